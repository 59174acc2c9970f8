// SPDX-License-Identifier: Apache-2.0
#include "core/search/method/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "core/plan/micro_batch.h"

namespace turnpoint::search {

namespace {

class WithBatchNote : public Searcher {
 public:
  WithBatchNote(std::unique_ptr<Searcher> searcher, int micro_batches)
      : searcher_(std::move(searcher)), micro_batches_(micro_batches) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    auto result = searcher_->run(scenario, pass, context);
    if (!result) return result;
    return with_note(*result, undivided_batch(*scenario, micro_batches_));
  }
  Expected<void> get_ready(const ScenarioPtr& scenario, const RunContext& context) override {
    return searcher_->get_ready(scenario, context);
  }

 private:
  std::unique_ptr<Searcher> searcher_;
  int micro_batches_;
};

}  // namespace

std::string undivided_batch(const Scenario& scenario, int micro_batches) {
  const Mesh mesh = make_mesh(*scenario.cluster);
  const auto model = micro_batch_model(scenario.model, micro_batches);
  if (!model) return {};  // which the search itself says
  std::int64_t most = 1;
  for (const Operator& op : (*model)->operators) {
    if (op.kind == OperatorKind::input || op.is_view()) continue;
    const Configuration split = data_parallel_configuration(op, mesh);
    std::int64_t over = 1;
    for (int a = 0; a < mesh.count(); ++a)
      if (split.axis[static_cast<std::size_t>(a)] >= 0) over *= mesh.axes[static_cast<std::size_t>(a)].size;
    most = std::max(most, over);
  }
  if (most >= mesh.devices()) return {};
  return fmt::format(
      "a {} of {} cannot be divided over {} devices: {}", micro_batches == 1 ? "batch" : "micro-batch", (*model)->batch,
      mesh.devices(),
      most == 1 ? "all of them do the same work" : fmt::format("it is over {}, which the others repeat", most));
}

std::string undivided_vocabulary(const Model& model, const TransformerRoles& roles, const std::vector<int>& tensor) {
  // Tables of words, and of the few kinds of words or classes that a network tells apart.
  std::int64_t vocabulary = 0, undivided = 0;
  std::string_view name;
  std::vector<int> sizes;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const int loop = roles.tensor_parallel_loop(model, OperatorId(i));
    if (loop < 0 || !roles.is_vocabulary[static_cast<std::size_t>(roles.dims.at(OperatorId(i), loop))]) continue;
    const Operator& op = model.operators[OperatorId(i)];
    const std::int64_t size = op.dims[static_cast<std::size_t>(loop)].size;
    vocabulary = std::max(vocabulary, size);
    std::vector<int> those;
    std::copy_if(tensor.begin(), tensor.end(), std::back_inserter(those), [&](int group) { return size % group != 0; });
    if (those.empty() || size <= undivided) continue;
    undivided = size, name = op.name, sizes = std::move(those);
  }
  if (sizes.empty()) return {};
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (undivided < vocabulary)
    return fmt::format(
        "the table of {} of '{}' cannot be divided over tensor groups of {}: it stands whole on every device",
        undivided, name, fmt::join(sizes, ", "));
  return fmt::format(
      "a vocabulary of {} cannot be divided over tensor groups of {}: embedding and logits stand whole on every device "
      "(Megatron pads the vocabulary)",
      undivided, fmt::join(sizes, ", "));
}

ResultPtr with_note(const ResultPtr& result, const std::string& note) {
  if (note.empty()) return result;
  auto noted = std::make_shared<Result>(*result);
  noted->notes.push_back(note);
  return noted;
}

std::unique_ptr<Searcher> with_batch_note(std::unique_ptr<Searcher> searcher, int micro_batches) {
  return std::make_unique<WithBatchNote>(std::move(searcher), micro_batches);
}

}  // namespace turnpoint::search
