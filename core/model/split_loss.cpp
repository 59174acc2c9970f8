// SPDX-License-Identifier: Apache-2.0
#include "core/model/split_loss.h"

#include <algorithm>
#include <numeric>

namespace turnpoint {

namespace {

/// The loop of the words; -1: no loss over a vocabulary, or split already.
int words_of(const Operator& op) {
  if (op.kind != OperatorKind::cross_entropy || reads_statistics(op)) return -1;
  const auto& last = op.inputs.front().walks.back();
  return last.size() == 1 && op.dims[last.front()].name == DimName::vocabulary ? last.front() : -1;
}

struct Halves {
  Operator statistics, loss;
  Tensor between;
};

/// Of the first, `words` becomes the loop over blocks, and new ones run within a block and over its numbers.
Halves halves_of(const Model& model, const Operator& whole, std::uint8_t words, std::int64_t blocks) {
  Halves made{whole, whole, {}};
  Operator &first = made.statistics, &loss = made.loss;
  const Tensor& logits = model.tensors[whole.inputs.front().tensor];
  const auto within = static_cast<std::uint8_t>(whole.dims.size()), number = static_cast<std::uint8_t>(within + 1);

  first.name = whole.name + "_statistics";
  first.kind = OperatorKind::loss_statistics;
  first.detail = "LogSumExp";
  for (LoopDimension& dim : first.dims) dim.role = DimRole::parallel;
  first.dims[words] = {DimName::vocabulary, DimRole::parallel, blocks, true};
  first.dims.push_back({DimName::vocabulary, DimRole::reduction, whole.dims[words].size / blocks, false});
  first.dims.push_back({DimName::other, DimRole::parallel, kLossNumbers, false});
  auto& walks = first.inputs.front().walks;
  walks.back() = {words, within};
  first.outputs = {{{}, walks, false}};
  first.outputs.front().walks.back() = {words};
  first.outputs.front().walks.push_back({number});

  made.between = logits;
  made.between.name = first.name;
  made.between.shape.back() = blocks;
  made.between.shape.push_back(kLossNumbers);
  made.between.dims.push_back(DimName::other);

  // The words are no loop of the loss.
  loss.dims.erase(loss.dims.begin() + words);
  const auto without_words = [&](auto walked) {
    for (auto& loops : walked)
      for (auto& loop : loops) loop = static_cast<std::uint8_t>(loop - (loop > words));
    return walked;
  };
  auto rows = whole.inputs.front().walks;
  rows.back().clear();
  rows.push_back({});
  loss.inputs = {{{}, without_words(rows), true}};
  loss.outputs.front().walks = without_words(loss.outputs.front().walks);
  loss.forward_flop = loss.backward_flop = 5.0 * static_cast<double>(made.between.elements());
  return made;
}

}  // namespace

ModelPtr split_loss(const ModelPtr& model) {
  std::shared_ptr<Model> made;
  for (std::size_t i = 0; i < model->operators.size(); ++i) {
    const Operator& op = model->operators[OperatorId(i)];
    const int words = words_of(op);
    const std::int64_t blocks = words < 0 ? 1 : std::gcd(op.dims[std::size_t(words)].size, kMostLossBlocks);
    if (blocks == 1) {
      if (made) made->operators.push_back(op);
      continue;
    }
    if (!made) {
      made = std::make_shared<Model>(*model);
      made->operators.clear();
      for (std::size_t before = 0; before < i; ++before)
        made->operators.push_back(model->operators[OperatorId(before)]);
    }
    Halves halves = halves_of(*model, op, static_cast<std::uint8_t>(words), blocks);
    const TensorId between = made->tensors.next_id();
    halves.statistics.outputs.front().tensor = halves.loss.inputs.front().tensor = between;
    made->tensors.push_back(std::move(halves.between));
    made->operators.push_back(std::move(halves.statistics));
    made->operators.push_back(std::move(halves.loss));
  }
  if (!made) return model;
  for (std::size_t i = 0; i < made->operators.size(); ++i)
    for (const Access& access : made->operators[OperatorId(i)].outputs)
      made->tensors[access.tensor].producer = OperatorId(i);
  made->fill_uses();
  return made;
}

}  // namespace turnpoint
