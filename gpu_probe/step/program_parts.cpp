// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/program_parts.h"

#include <algorithm>
#include <map>

namespace turnpoint::step {

bool gradients_meet(const Layout& from, const Layout& gradient) {
  for (std::size_t a = 0; a < gradient.axis.size(); ++a) {
    const auto source = from.axis[a], here = gradient.axis[a];
    const bool fine =
        source == Layout::kPartial ? here == Layout::kPartial || here == Layout::kReplicated : here == source;
    if (!fine) return false;
  }
  return true;
}

std::vector<bool> readers_keep(const Model& model) {
  std::vector<bool> kept(model.tensors.size(), false);
  for (std::size_t i = model.operators.size(); i-- > 0;) {
    const Operator& op = model.operators[OperatorId(i)];
    const bool passed_on = op.is_view() && std::any_of(op.outputs.begin(), op.outputs.end(),
                                                       [&](const Access& a) { return kept[a.tensor.index]; });
    for (const auto& access : op.inputs)
      if (access.saved || passed_on) kept[access.tensor.index] = true;
  }
  return kept;
}

namespace {

bool is_activation(const Tensor& tensor) {
  return tensor.role == TensorRole::activation || tensor.role == TensorRole::input;
}

bool can_run_again(const Program& program, std::size_t i) {
  const Operator& op = program.model->operators[OperatorId(i)];
  const OperatorProgram& here = program.operators[i];
  if (op.is_view() || op.kind == OperatorKind::input || op.outputs.size() != 1) return false;
  int activations = 0, lost = -1;
  for (std::size_t k = 0; k < op.inputs.size(); ++k) {
    if (!is_activation(program.model->tensors[op.inputs[k].tensor])) continue;
    ++activations;
    if (!op.inputs[k].saved) lost = static_cast<int>(k);
  }
  if (activations == 0) return false;
  if (lost < 0) return !op.outputs.front().saved;
  if (activations != 1) return false;
  const Flow& flow = program.flows[static_cast<std::size_t>(here.input_flow[static_cast<std::size_t>(lost)])];
  if (flow.consumers.size() != 1 || flow.of_view) return false;
  return flow.producer_saves || program.operators[flow.producer.index].runs_again;
}

}  // namespace

void mark_runs_again(Program& program, OperatorId id) {
  OperatorProgram& here = program.operators[id.index];
  const Operator& op = program.model->operators[id];
  if (!here.choice.recompute) return;
  here.runs_again = can_run_again(program, id.index);
  bool masks_only = true, internal = false;
  for (const auto& access : op.outputs) {
    const Tensor& tensor = program.model->tensors[access.tensor];
    if (tensor.role != TensorRole::internal) continue;
    internal = internal || access.saved;
    masks_only = masks_only && !is_floating(tensor.type);
  }
  here.recalls_internals =
      internal && (masks_only || std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
                     return access.saved || program.model->tensors[access.tensor].role != TensorRole::activation;
                   }));
}

Expected<std::vector<Tie>> find_ties(const Model& model, Program& program) {
  std::vector<Tie> ties;
  std::map<TensorId, Tie> owners;
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      const Tensor& tensor = model.tensors[op.inputs[k].tensor];
      if (tensor.role != TensorRole::parameter) continue;
      const TensorId root = tensor.tied_to.valid() ? tensor.tied_to : op.inputs[k].tensor;
      const auto [at, first] = owners.try_emplace(root);
      if (first) at->second = {OperatorId(i), {}, k, 0, false, {}};
      if (first || tensor.shape.size() < 2) {
        program.operators[i].owned[k] = true;
        continue;
      }
      Tie tie = at->second;
      tie.user = OperatorId(i);
      tie.user_input = k;
      const Shape& held = model.tensors[model.operators[tie.owner].inputs[tie.owner_input].tensor].shape;
      const bool turned =
          held.size() == 2 && tensor.shape.size() == 2 && held[0] == tensor.shape[1] && held[1] == tensor.shape[0];
      if ((held != tensor.shape && !turned) || tie.owner == tie.user)
        return usage_error("cannot be executed here: a tied parameter of another shape, or used twice by one operator",
                           model.name + ": operator '" + op.name + "'");
      tie.turned = held != tensor.shape;
      ties.push_back(tie);
    }
  }
  return ties;
}

namespace {

// Takes one set's steps from the plan's list.
Expected<void> take_steps(const Program& program, OperatorId id, const std::vector<ReshardStep>& steps,
                          ParameterSet& set, std::size_t& next) {
  const PlanOperator& planned = program.plan->operators[id.index];
  const auto bad = [&](const char* what) {
    return bad_input(std::string("plan: ") + what, program.model->name + ": " + program.model->operators[id].name);
  };
  set.first_step = static_cast<std::int32_t>(next);
  const bool sharded_weights = planned.choice.update == Update::sharded_weights;
  while (set.shards && sharded_weights && next < steps.size() && steps[next].move == ReshardMove::all_gather)
    set.gathers.push_back(steps[next++]);
  if (set.shards && sharded_weights && set.gathers.empty()) return bad("sharded weights are not gathered");
  std::uint32_t pending = set.partial | set.shards;
  while (pending) {
    if (next == steps.size()) return bad("gradients are not summed over all their axes");
    const ReshardStep& step = steps[next++];
    const std::uint32_t may = step.move == ReshardMove::reduce_scatter ? set.partial & set.shards
                              : step.move == ReshardMove::slice        ? set.shards & ~set.partial
                              : step.move == ReshardMove::all_reduce   ? set.partial & ~set.shards
                                                                       : 0;
    if (!step.axes || (step.axes & ~(may & pending))) return bad("gradients are not summed over all their axes once");
    set.sync.push_back(step);
    pending &= ~step.axes;
  }
  if (!set.shards || sharded_weights) return {};
  if (next == steps.size() || steps[next].move != ReshardMove::all_gather || steps[next].axes != set.shards)
    return bad("new weights are not gathered");
  set.spread = steps[next++];
  return {};
}

}  // namespace

Expected<void> add_parameters(Program& program, OperatorId id) {
  OperatorProgram& here = program.operators[id.index];
  const Operator& op = program.model->operators[id];
  const int axes = program.plan->mesh.count();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> sets;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    if (!here.owned[k]) continue;
    std::uint32_t whole = 0;
    for (int a = 0; a < axes; ++a)
      if (here.inputs[k].axis[static_cast<std::size_t>(a)] < 0) whole |= 1u << a;
    sets[{here.inputs[k].mask(Layout::kPartial), whole}].push_back(k);
  }
  const auto steps = all_steps(program.plan->operators[id.index].parameters);
  std::size_t next = 0;
  for (auto& [masks, inputs] : sets) {
    ParameterSet set;
    set.inputs = inputs;
    set.partial = masks.first;
    set.whole = masks.second;
    set.shards = here.choice.update == Update::replicated ? 0 : here.choice.update_axes & set.whole;
    if (auto done = take_steps(program, id, steps, set, next); !done) return done;
    here.parameters.push_back(std::move(set));
  }
  if (next != steps.size())
    return bad_input("plan: synchronises gradients that are whole already", program.model->name + ": " + op.name);
  return {};
}

}  // namespace turnpoint::step
