// SPDX-License-Identifier: Apache-2.0
// The backward pass of one rank.
#include "gpu_probe/step/rank_step.h"

#include <algorithm>

namespace turnpoint::step {

Expected<void> RankStep::backward() {
  for (std::size_t i = program_.operators.size(); i-- > 0;)
    if (auto done = backward_operator(OperatorId(i)); !done) return done;
  learn();
  return {};
}

// The gradients of an operator's outputs in its own layout, from all readers and from the loss; null: none.
Expected<RankStep::Values> RankStep::output_gradients(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  Values gradients(op.outputs.size());
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    const Tensor& tensor = tensor_of(op.outputs[o]);
    if (here.output_flow[o] < 0 || !tensor.requires_gradient) continue;
    const auto number = static_cast<std::size_t>(here.output_flow[o]);
    const Flow& flow = program_.flows[number];
    Value gradient = std::move(gradient_[number]);
    if (flow.shared && gradient && flow.shared->reshard) {
      const Way& way = *flow.shared;
      auto moved = move(*way.reshard, ReshardRole::gradient, way.read, tensor, std::move(gradient),
                        tensor.name + ": gradient");
      if (!moved) return moved.error();
      gradient = std::move(*moved);
    }
    for (const auto result : program_.model->results) {
      if (result != flow.tensor || !is_floating(tensor.type)) continue;
      const Stopwatch watch(*this, id, StepPhase::backward);
      if (!gradient) gradient = make_clear(tensor, flow.produced.without_partial());
      const Array& factors = loss_factors(flow, gradient->region);
      add(factors.data(), gradient->data.data(), factors.size());
    }
    if (gradient) record(Compared::activation_gradient, id, static_cast<std::uint32_t>(o), *gradient, 0);
    gradients[o] = std::move(gradient);
  }
  return gradients;
}

// A plan that is not the best may repeat what nobody needs: an operator or a shared copy whose readers all kept their
// own, or a view's input where the view's readers did. It is done all the same, since the plan lists and prices it.
Expected<void> RankStep::repeat_what_is_listed(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  const auto done = [&] {
    int runs = 0;
    for (const int times : report_.runs_again) runs += times;
    return report_.traffic.size() + static_cast<std::size_t>(runs);
  };
  const std::size_t before = done();
  if (here.runs_again && report_.runs_again[id.index] == 0)
    if (auto outputs = run_again(id); !outputs) return outputs.error();
  for (const auto output : here.output_flow) {
    if (output < 0) continue;
    const auto number = static_cast<std::size_t>(output);
    const Flow& flow = program_.flows[number];
    if (!flow.shared || !flow.shared->saved || shared_made_[number] || flow.of_view) continue;
    auto value = produced(flow, number);
    if (!value) return value.error();
    value = repeat(*flow.shared, std::move(*value), program_.model->tensors[flow.tensor],
                   program_.model->tensors[flow.tensor].name);
    if (!value) return value.error();
  }
  for (std::size_t k = 0; op.is_view() && k < op.inputs.size(); ++k) {
    if (here.input_flow[k] < 0) continue;
    const Way& way =
        program_.flows[static_cast<std::size_t>(here.input_flow[k])].ways[static_cast<std::size_t>(here.input_way[k])];
    if (!way.saved || was_fetched_[id.index][k]) continue;
    if (auto value = fetch(id, k); !value) return value.error();
  }
  if (done() > before) ++report_.idle_repeats;
  return {};
}

Expected<void> RankStep::backward_operator(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  if (auto done = repeat_what_is_listed(id); !done) return done;
  auto gradients = output_gradients(id);
  if (!gradients) return gradients.error();

  // What the model says that backward reads.
  Values inputs(op.inputs.size()), outputs(op.outputs.size()), results(op.inputs.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (tensor_of(op.inputs[k]).role == TensorRole::parameter) continue;
    if (!op.inputs[k].saved) continue;
    auto value = fetch(id, k);
    if (!value) return value.error();
    inputs[k] = std::move(*value);
  }
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (!op.outputs[o].saved) continue;
    if (here.output_flow[o] >= 0) {
      const auto number = static_cast<std::size_t>(here.output_flow[o]);
      auto value = produced(program_.flows[number], number);
      if (!value) return value.error();
      outputs[o] = std::move(*value);
    } else if (here.recalls_internals) {
      auto values = run_again(id);
      if (!values) return values.error();
      outputs[o] = (*values)[o];
    } else {
      outputs[o] = kept_internal_[id.index][o];
    }
  }
  for (std::size_t k = 0; k < inputs.size(); ++k)
    if ((op.inputs[k].saved || here.along[k]) && rerun_weights_[id.index][k]) {
      used(rerun_weights_[id.index][k]);
      inputs[k] = rerun_weights_[id.index][k];
    }
  if (auto done = read_weights(id, true, false, inputs); !done) return done;

  bool any = false;
  if (Value same = gradient_seen_through(id, *gradients)) {
    results[0] = std::move(same);
  } else {
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!tensor_of(op.inputs[k]).requires_gradient) continue;
      any = true;
      results[k] = gradient_target(id, k);
    }
  }
  if (any)
    if (auto done = compute_backward(id, inputs, outputs, *gradients, results); !done) return done;
  inputs.clear();
  outputs.clear();
  gradients->clear();
  kept_internal_[id.index].clear();
  advance();
  for (std::size_t k = 0; k < results.size(); ++k)
    if (results[k])
      if (auto done = send_gradient(id, k, std::move(results[k])); !done) return done;
  for (auto& share : shares_[id.index])
    if (auto done = share.synchronise(last_micro_batch()); !done) return done;
  release(id);
  return {};
}

// Where the gradient of an input is computed: a parameter's in the run that is synchronised, if it is the first there.
Value RankStep::gradient_target(OperatorId id, std::size_t k) {
  const OperatorProgram& here = program_of(id);
  if (fast() && here.owned[k])
    for (auto& share : shares_[id.index])
      if (auto target = share.gradient_target(static_cast<std::uint32_t>(k))) return target;
  if (fast() && here.input_tie[k] >= 0) {
    const Tie& tie = program_.ties[static_cast<std::size_t>(here.input_tie[k])];
    if (!tie.turned && (tie.way.meets || !tie.way.reshard) && adds(tie.way.from, tie.way))
      for (auto& share : shares_[tie.owner.index])
        if (auto target = share.gradient_target(tie.owner_input)) return target;
  }
  return make(tensor_of(op_of(id).inputs[k]), here.inputs[k]);
}

// That of a view's input where the view left every element where it was.
Value RankStep::gradient_seen_through(OperatorId id, const Values& gradients) {
  const Operator& op = op_of(id);
  if (!op.is_view() || !fast() || !gradients[0] || !tensor_of(op.inputs[0]).requires_gradient) return nullptr;
  const Tensor& tensor = tensor_of(op.inputs[0]);
  const Region region = region_of(mesh(), rank(), program_of(id).inputs[0], tensor.shape);
  if (!keeps_order(local(id), region, gradients[0]->region)) return nullptr;
  return std::make_shared<Block>(report_.ledger, region, element_bytes(tensor, program_.options), gradients[0]->data,
                                 false);
}

Expected<void> RankStep::compute_backward(OperatorId id, const Values& inputs, const Values& outputs,
                                          const Values& gradients, Values& results) {
  const Stopwatch watch(*this, id, StepPhase::backward);
  const OperatorProgram& here = program_of(id);
  std::vector<const Block*> in, out, gradient;
  std::vector<Block*> result;
  for (const auto& value : inputs) in.push_back(value.get());
  for (const auto& value : outputs) out.push_back(value.get());
  for (const auto& value : gradients) gradient.push_back(value.get());
  const LocalOperator at = local(id);
  // Kernels of a device write every element of their results, if anything comes back at all.
  if (arithmetic().on_device &&
      std::count(gradient.begin(), gradient.end(), nullptr) == std::ptrdiff_t(gradient.size())) {
    for (const auto& value : results)
      if (value) value->data.clear();
    return {};
  }
  for (const auto& value : results) result.push_back(value.get());
  if (fast() && here.kernel.fast_backward && here.kernel.fast_backward(at, in, out, gradient, result)) return {};
  for (auto* block : result)
    if (block && !arithmetic().on_device) block->data.clear();
  return here.kernel.backward(at, in, out, gradient, result);
}

// What arrives complete, where others are still partial sums, is added by one rank only.
bool RankStep::adds(const Layout& meeting, const Way& way) const {
  const std::uint32_t arrives = way.meets ? way.read.mask(Layout::kPartial) : 0;
  return position_of(mesh(), rank(), meeting.mask(Layout::kPartial) & ~arrives) == 0;
}

// Brings an input's gradient to where the tensor's gradients are summed.
Expected<void> RankStep::send_gradient(OperatorId id, std::size_t k, Value gradient) {
  const OperatorProgram& here = program_of(id);
  const Access& access = op_of(id).inputs[k];
  const auto bring = [&](const Way& way, const Tensor& tensor, const std::string& where) -> Expected<void> {
    if (way.meets || !way.reshard) return {};
    auto moved = move(*way.reshard, ReshardRole::gradient, way.read, tensor, std::move(gradient),
                      where + ": gradient");
    if (!moved) return moved.error();
    gradient = std::move(*moved);
    return {};
  };
  if (here.owned[k]) {
    for (std::size_t s = 0; s < here.parameters.size(); ++s) {
      const auto& of_set = here.parameters[s].inputs;
      if (std::find(of_set.begin(), of_set.end(), k) != of_set.end())
        shares_[id.index][s].add_gradient(static_cast<std::uint32_t>(k), gradient, false, backward_seconds(id));
    }
    return {};
  }
  if (here.input_tie[k] >= 0) {
    const Tie& tie = program_.ties[static_cast<std::size_t>(here.input_tie[k])];
    const Tensor& held = tensor_of(op_of(tie.owner).inputs[tie.owner_input]);
    const bool moves = tie.way.reshard && !tie.way.meets && !tie.way.reshard->gradient.empty();
    if (tie.turned) gradient = turned(report_.ledger, gradient);
    if (auto done = bring(tie.way, held, op_of(id).name + ": tied weight"); !done) return done;
    if (!adds(tie.way.from, tie.way)) return {};
    const auto& sets = program_of(tie.owner).parameters;
    for (std::size_t s = 0; s < sets.size(); ++s)
      if (std::find(sets[s].inputs.begin(), sets[s].inputs.end(), tie.owner_input) != sets[s].inputs.end())
        shares_[tie.owner.index][s].add_gradient(tie.owner_input, gradient, tie.turned || moves, backward_seconds(id));
    return {};
  }
  const auto number = static_cast<std::size_t>(here.input_flow[k]);
  const Flow& flow = program_.flows[number];
  const Way& way = flow.ways[static_cast<std::size_t>(here.input_way[k])];
  if (auto done = bring(way, tensor_of(access), tensor_of(access).name + " -> " + op_of(id).name); !done) return done;
  Value& sum = gradient_[number];
  if (gradient->region != region_of(mesh(), rank(), flow.meeting(), tensor_of(access).shape))
    return bad_input("plan: gradients meet in different layouts", program_.model->name + ": " + tensor_of(access).name);
  const Stopwatch watch(*this, flow.producer, StepPhase::backward);
  if (!adds(flow.meeting(), way)) {
    if (!sum) sum = make_clear(tensor_of(access), flow.meeting());
  } else if (!sum) {
    sum = std::move(gradient);
  } else {
    add(gradient->data.data(), sum->data.data(), sum->data.size());
  }
  return {};
}

// Nobody reads an operator's outputs, copies and reruns once its own backward is done.
void RankStep::release(OperatorId id) {
  const OperatorProgram& here = program_of(id);
  again_[id.index].clear();
  kept_internal_[id.index].clear();
  for (auto& value : rerun_weights_[id.index]) value.reset();
  for (std::size_t k = 0; k < here.inputs.size(); ++k) {
    fetched_[id.index][k].reset();
    if (here.input_flow[k] >= 0) {
      const auto number = static_cast<std::size_t>(here.input_flow[k]),
                 reader = static_cast<std::size_t>(here.input_way[k]);
      // The producer's backward is still to read what is made from it.
      if (!program_.flows[number].ways[reader].restores) kept_copy_[number][reader].reset();
    }
    if (here.input_tie[k] >= 0) kept_tie_[static_cast<std::size_t>(here.input_tie[k])].reset();
  }
  for (const auto flow : here.output_flow) {
    if (flow < 0) continue;
    const auto number = static_cast<std::size_t>(flow);
    kept_source_[number].reset();
    kept_shared_[number].reset();
    repeated_shared_[number].reset();
    restored_source_[number].reset();
    for (auto& value : kept_copy_[number]) value.reset();
  }
}

}  // namespace turnpoint::step
