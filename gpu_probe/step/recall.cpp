// SPDX-License-Identifier: Apache-2.0
// What backward reads: a copy that the plan keeps, a resharding repeated from such a copy, or an operator run again.
#include <algorithm>

#include "gpu_probe/step/rank_step.h"

namespace turnpoint::step {

// The tensor of one input in the layout in which the operator reads it.
Expected<Value> RankStep::fetch(OperatorId id, std::size_t k) {
  Value& known = fetched_[id.index][k];
  used(known);
  was_fetched_[id.index][k] = 1;
  if (known) return known;
  const OperatorProgram& here = program_of(id);
  const Access& access = op_of(id).inputs[k];
  if (here.input_flow[k] < 0) {
    known = generated(tensor_of(access), access.tensor, here.inputs[k].without_partial());
    return known;
  }
  const auto number = static_cast<std::size_t>(here.input_flow[k]),
             reader = static_cast<std::size_t>(here.input_way[k]);
  const Flow& flow = program_.flows[number];
  const Way& way = flow.ways[reader];
  if (kept_copy_[number][reader]) {
    used(kept_copy_[number][reader]);
    known = kept_copy_[number][reader];
    return known;
  }
  const std::string where = tensor_of(access).name + " -> " + op_of(id).name;
  Value source;
  if (!flow.shared) {
    auto value = produced(flow, number);
    if (!value) return value.error();
    source = std::move(*value);
  } else if (kept_shared_[number]) {
    used(kept_shared_[number]);
    source = kept_shared_[number];
  } else {
    if (!repeated_shared_[number]) {
      auto value = produced(flow, number);
      if (!value) return value.error();
      value = repeat(*flow.shared, std::move(*value), tensor_of(access), tensor_of(access).name);
      if (!value) return value.error();
      repeated_shared_[number] = std::move(*value);
      shared_made_[number] = 1;
    }
    used(repeated_shared_[number]);
    source = repeated_shared_[number];
  }
  auto value = repeat(way, std::move(source), tensor_of(access), where);
  if (!value) return value.error();
  known = std::move(*value);
  used(known);
  return known;
}

// The forward resharding once more, where the plan lists it in backward.
Expected<Value> RankStep::repeat(const Way& way, Value value, const Tensor& tensor, const std::string& where) {
  if (!way.moves()) return value;
  if (!way.repeats())
    return bad_input("plan: backward reads a copy that is neither kept nor made again",
                     program_.model->name + ": " + where);
  // Nobody else is to hold what is let go after the first step.
  if (way.reshard->repeated.size() > 1) advance();
  return move(*way.reshard, ReshardRole::repeated, way.start, tensor, std::move(value), where + ": again");
}

// The tensor as its producer left it.
Expected<Value> RankStep::produced(const Flow& flow, std::size_t number) {
  if (kept_source_[number]) {
    used(kept_source_[number]);
    return kept_source_[number];
  }
  if (const Way* way = flow.restoring()) {
    Value& made = restored_source_[number];
    if (!made) {
      Value& kept = flow.shared ? kept_shared_[number] : kept_copy_[number].front();
      used(kept);
      const Tensor& tensor = program_.model->tensors[flow.tensor];
      auto moved = move(*way->reshard, ReshardRole::restored, way->goal, tensor, kept, tensor.name + ": back");
      if (!moved) return moved.error();
      made = std::move(*moved);
    }
    used(made);
    return made;
  }
  const OperatorProgram& producer = program_of(flow.producer);
  if (!flow.of_view && !producer.runs_again)
    return bad_input("plan: backward reads '" + program_.model->tensors[flow.tensor].name +
                         "', which is neither kept nor computed again",
                     program_.model->name);
  auto outputs = run_again(flow.producer);
  if (!outputs) return outputs.error();
  return (*outputs)[flow.output];
}

// One more run of an operator in backward; of a view only its input is needed.
Expected<RankStep::Values> RankStep::run_again(OperatorId id) {
  Values& known = again_[id.index];
  used(known);
  if (!known.empty()) return known;
  const Operator& op = op_of(id);
  // Masks need their seed alone.
  const bool only_masks =
      op.outputs.size() > 1 && std::all_of(op.outputs.begin() + 1, op.outputs.end(),
                                           [&](const Access& access) { return !is_floating(tensor_of(access).type); });
  Values inputs = rerun_weights_[id.index];
  if (!only_masks)
    if (auto done = read_weights(id, false, true, inputs); !done) return done.error();
  for (std::size_t k = 0; k < inputs.size() && !only_masks; ++k) {
    if (inputs[k]) {
      rerun_weights_[id.index][k] = inputs[k];
      used(rerun_weights_[id.index][k]);
      continue;
    }
    auto value = fetch(id, k);
    if (!value) return value.error();
    inputs[k] = std::move(*value);
  }
  auto outputs = compute(id, inputs, StepPhase::recompute);
  if (!outputs) return outputs.error();
  if (!op.is_view()) ++report_.runs_again[id.index];
  known = std::move(*outputs);
  used(known);
  Values made = known;
  inputs.clear();
  advance();
  return made;
}

void RankStep::advance() {
  if (learned_ && tick_ < free_after_.size()) {
    for (Value* slot : free_after_[tick_]) slot->reset();
    for (Values* all : free_all_after_[tick_]) all->clear();
  }
  ++tick_;
}

void RankStep::learn() {
  if (learned_) return;
  learned_ = true;
  free_after_.resize(tick_ + 1);
  free_all_after_.resize(tick_ + 1);
  for (const auto& [slot, tick] : last_use_) free_after_[tick].push_back(slot);
  for (const auto& [all, tick] : last_use_of_all_) free_all_after_[tick].push_back(all);
}

}  // namespace turnpoint::step
