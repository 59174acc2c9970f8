// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/step_links.h"

#include <algorithm>

namespace turnpoint {
namespace {

bool has_sequence(const Tensor& tensor, std::int64_t steps) {
  for (std::size_t i = 0; i < tensor.shape.size(); ++i)
    if (tensor.shape[i] == steps && (tensor.dims[i] == DimName::sequence || tensor.dims[i] == DimName::time))
      return true;
  return false;
}

bool has_parameters(const Model& model, const Operator& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(),
                     [&](const Access& access) { return model.tensors[access.tensor].role == TensorRole::parameter; });
}

StepwiseOperator without_state(std::int64_t steps) {
  StepwiseOperator made{steps, {}};
  made.cell.parts = {{"step", CellPart::Work::elementwise, 0, {}, {}, {}, true}};
  made.cell.share = {1};
  return made;
}

}  // namespace

StepLinks::StepLinks(const Model& model, bool in_parts) : model_(model) {
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const OperatorId id(i);
    const Operator& op = model.operators[id];
    if (op.kind == OperatorKind::recurrent) {
      const std::int64_t steps = time_steps(op);
      if (steps < 2) continue;
      operators_[id] = {steps, cell_program(model, op, in_parts)};
      link(id, steps);
    } else if ((op.kind == OperatorKind::elementwise || op.kind == OperatorKind::concat) &&
               !has_parameters(model, op)) {
      std::int64_t steps = 0;
      for (const auto& [known, stepwise] : operators_)
        for (const Access& access : op.inputs)
          if (producer_in_step(access.tensor, stepwise.steps) == known) steps = stepwise.steps;
      if (steps == 0 || !has_sequence(model.tensors[op.outputs.front().tensor], steps)) continue;
      operators_[id] = without_state(steps);
      link(id, steps);
    }
  }
}

/// What made the tensor that a stepwise operator reads, if every view between keeps the sequence.
OperatorId StepLinks::producer_in_step(TensorId tensor, std::int64_t steps) const {
  while (has_sequence(model_.tensors[tensor], steps)) {
    const OperatorId producer = model_.tensors[tensor].producer;
    if (!producer.valid() || !model_.operators[producer].is_view()) return producer;
    tensor = model_.operators[producer].inputs.front().tensor;
  }
  return {};
}

void StepLinks::link(OperatorId consumer, std::int64_t steps) {
  for (const Access& access : model_.operators[consumer].inputs) {
    const OperatorId producer = producer_in_step(access.tensor, steps);
    const StepwiseOperator* known = producer.valid() ? find(producer) : nullptr;
    if (known && known->steps == steps) links_.insert({producer, consumer});
  }
}

const StepwiseOperator* StepLinks::find(OperatorId id) const {
  const auto known = operators_.find(id);
  return known == operators_.end() ? nullptr : &known->second;
}

bool StepLinks::in_step(OperatorId a, OperatorId b) const { return links_.contains({a, b}) || links_.contains({b, a}); }

}  // namespace turnpoint
