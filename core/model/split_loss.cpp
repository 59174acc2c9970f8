// SPDX-License-Identifier: Apache-2.0
#include "core/model/split_loss.h"

#include <algorithm>
#include <numeric>

namespace turnpoint {

namespace {

constexpr std::size_t kLogits = 0, kStatistics = 2;  ///< inputs of a loss

/// The loop of the words; -1: no loss over a vocabulary, or split already.
int words_of(const Operator& op) {
  if (op.kind != OperatorKind::cross_entropy || op.inputs.size() != kStatistics) return -1;
  const auto& last = op.inputs[kLogits].walks.back();
  return last.size() == 1 && op.dims[last.front()].name == DimName::vocabulary ? last.front() : -1;
}

struct Halves {
  Operator statistics, loss;
  Tensor between;
};

/// `words` becomes the loop over blocks, a new one runs within a block.
Halves halves_of(const Model& model, const Operator& whole, std::uint8_t words, std::int64_t blocks) {
  Halves made{whole, whole, {}};
  Operator &first = made.statistics, &loss = made.loss;
  const Tensor& logits = model.tensors[whole.inputs[kLogits].tensor];
  const auto within = static_cast<std::uint8_t>(whole.dims.size());
  loss.dims[words] = {DimName::vocabulary, DimRole::reduction, blocks, true};
  loss.dims.push_back({DimName::vocabulary, DimRole::reduction, whole.dims[words].size / blocks, false});
  loss.inputs[kLogits].walks.back() = {words, within};

  first.name = whole.name + "_statistics";
  first.kind = OperatorKind::loss_statistics;
  first.detail = "LogSumExp";
  first.dims = loss.dims;
  for (std::size_t l = 0; l < first.dims.size(); ++l)
    if (l != within) first.dims[l].role = DimRole::parallel;
  first.dims.push_back({DimName::other, DimRole::parallel, 2, false});  // the number, and what rounding lost of it
  first.inputs = {loss.inputs[kLogits]};
  auto walks = loss.inputs[kLogits].walks;
  walks.back() = {words};
  walks.push_back({static_cast<std::uint8_t>(within + 1)});
  first.outputs = {{{}, walks, false}};

  // The labels' logits are read at once; their gradient needs none of them.
  loss.inputs[kLogits].saved = false;
  walks[walks.size() - 2].clear();
  walks.back().clear();
  loss.inputs.push_back({{}, walks, true});

  made.between.name = first.name;
  made.between.role = TensorRole::activation;
  made.between.type = logits.type;
  made.between.shape = logits.shape;
  made.between.dims = logits.dims;
  made.between.shape.back() = blocks;
  made.between.shape.push_back(2);
  made.between.dims.push_back(DimName::other);
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
    halves.statistics.outputs.front().tensor = halves.loss.inputs[kStatistics].tensor = between;
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

bool touches_few(const Operator& op, std::size_t input) {
  if (op.kind == OperatorKind::cross_entropy) return input == kLogits && op.inputs.size() > kStatistics;
  return op.kind == OperatorKind::embedding && input == 0;
}

}  // namespace turnpoint
