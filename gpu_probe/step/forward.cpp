// SPDX-License-Identifier: Apache-2.0
// The forward pass of one rank.
#include "gpu_probe/step/rank_step.h"

namespace turnpoint::step {

Expected<void> RankStep::forward() {
  for (std::size_t i = 0; i < program_.operators.size(); ++i)
    if (auto done = forward_operator(OperatorId(i)); !done) return done;
  return {};
}

Expected<void> RankStep::forward_operator(OperatorId id) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  if (op.kind == OperatorKind::input) {
    Values data;
    for (std::size_t o = 0; o < op.outputs.size(); ++o)
      data.push_back(generated(tensor_of(op.outputs[o]), op.outputs[o].tensor, here.outputs[o]));
    return publish(id, std::move(data));
  }
  Values inputs(op.inputs.size());
  if (auto done = read_weights(id, false, false, inputs); !done) return done;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    if (inputs[k]) continue;
    auto value = input_value(id, k);
    if (!value) return value.error();
    inputs[k] = std::move(*value);
  }
  auto outputs = compute(id, inputs, StepPhase::forward);
  if (!outputs) return outputs.error();
  inputs.clear();  // what nobody else reads goes before anything is resharded
  return publish(id, std::move(*outputs));
}

// To one reader, whose copy is kept if the plan keeps it. The source is let go after the first step.
Expected<Value> RankStep::follow(std::size_t number, std::size_t reader, Value value) {
  const Flow& flow = program_.flows[number];
  const Way& way = flow.ways[reader];
  if (way.reshard) {
    const Tensor& tensor = program_.model->tensors[flow.tensor];
    auto moved = move(*way.reshard, ReshardRole::forward, way.start, tensor, std::move(value),
                      tensor.name + " -> " + op_of(flow.consumers[reader].op).name);
    if (!moved) return moved.error();
    value = std::move(*moved);
  }
  if (way.saved && way.moves() && way.keeps_copy()) {
    value->count_as(Held::kept);
    kept_copy_[number][reader] = value;
  }
  return value;
}

// An activation by its way, or what is the same for every step.
Expected<Value> RankStep::input_value(OperatorId id, std::size_t k) {
  const OperatorProgram& here = program_of(id);
  const Access& access = op_of(id).inputs[k];
  if (here.input_flow[k] < 0) return generated(tensor_of(access), access.tensor, here.inputs[k].without_partial());
  const auto number = static_cast<std::size_t>(here.input_flow[k]),
             reader = static_cast<std::size_t>(here.input_way[k]);
  Value value = live_[number];
  if (--unread_[number] == 0) live_[number].reset();
  return program_.flows[number].goes_on_at_once() ? value : follow(number, reader, std::move(value));
}

Expected<RankStep::Values> RankStep::compute(OperatorId id, const Values& inputs, StepPhase phase) {
  const Stopwatch watch(*this, id, phase);
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  Values outputs;
  std::vector<const Block*> in;
  std::vector<Block*> out;
  for (const auto& value : inputs) in.push_back(value.get());
  const LocalOperator at = local(id);
  if (auto shared = seen_through(at, inputs); shared) return Values{std::move(shared)};
  for (std::size_t o = 0; o < op.outputs.size(); ++o) {
    outputs.push_back(make(tensor_of(op.outputs[o]), here.outputs[o]));
    out.push_back(outputs.back().get());
  }
  if (fast() && here.kernel.fast_forward && here.kernel.fast_forward(at, in, out)) return outputs;
  if (!arithmetic().on_device)
    for (auto* block : out) block->data.clear();
  if (auto done = here.kernel.forward(at, in, out); !done) return done.error();
  return outputs;
}

// A view that leaves every element where it is needs no copy.
Value RankStep::seen_through(const LocalOperator& at, const Values& inputs) {
  if (!at.op().is_view() || !fast() || at.op().outputs.size() != 1 || !inputs[0]) return nullptr;
  const Tensor& tensor = at.output(0);
  const Region region = region_of(mesh(), rank(), program_of(at.id).outputs[0], tensor.shape);
  if (!keeps_order(at, inputs[0]->region, region)) return nullptr;
  return std::make_shared<Block>(report_.ledger, region, element_bytes(tensor, program_.options), inputs[0]->data,
                                 false);
}

// Hands the outputs to their readers and keeps what the plan keeps.
Expected<void> RankStep::publish(OperatorId id, Values outputs) {
  const Operator& op = op_of(id);
  const OperatorProgram& here = program_of(id);
  kept_internal_[id.index].resize(outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    record(Compared::activation, id, static_cast<std::uint32_t>(o), *outputs[o],
           here.outputs[o].mask(Layout::kPartial));
    if (here.output_flow[o] < 0) {
      if (!op.outputs[o].saved || here.recalls_internals) continue;
      outputs[o]->count_as(Held::kept);
      kept_internal_[id.index][o] = outputs[o];
      continue;
    }
    const auto number = static_cast<std::size_t>(here.output_flow[o]);
    const Flow& flow = program_.flows[number];
    add_loss(flow, *outputs[o]);
    const auto needs_source = [](const Way& way) {
      return way.saved && (!way.moves() || (way.reshard && way.reshard->keep == Keep::before));
    };
    bool keep = flow.producer_saves && !flow.restoring();
    if (flow.shared) keep = keep || needs_source(*flow.shared);
    for (std::size_t c = 0; !flow.shared && c < flow.ways.size(); ++c) keep = keep || needs_source(flow.ways[c]);
    if (keep && !flow.of_view && !here.runs_again) {
      outputs[o]->count_as(Held::kept);
      kept_source_[number] = outputs[o];
    }
    Value source = std::move(outputs[o]);
    if (flow.shared) {
      if (flow.shared->reshard) {
        const Tensor& tensor = tensor_of(op.outputs[o]);
        auto moved = move(*flow.shared->reshard, ReshardRole::forward, flow.shared->start, tensor, std::move(source),
                          tensor.name);
        if (!moved) return moved.error();
        source = std::move(*moved);
      }
      if (flow.shared->saved && flow.shared->moves() && flow.shared->keeps_copy()) {
        source->count_as(Held::kept);
        kept_shared_[number] = source;
        shared_made_[number] = 1;
      }
    } else if (flow.goes_on_at_once()) {
      auto moved = follow(number, 0, std::move(source));
      if (!moved) return moved.error();
      source = std::move(*moved);
    }
    if (unread_[number] > 0) live_[number] = std::move(source);
  }
  return {};
}

void RankStep::add_loss(const Flow& flow, const Block& value) {
  const Tensor& tensor = program_.model->tensors[flow.tensor];
  if (!is_floating(tensor.type)) return;
  int times = 0;
  for (const auto result : program_.model->results) times += result == flow.tensor;
  if (times == 0) return;
  // Replicas hold the same element: the first of them counts it. Summands all count.
  std::uint32_t replicated = 0;
  for (int a = 0; a < mesh().count(); ++a)
    if (flow.produced.axis[static_cast<std::size_t>(a)] == Layout::kReplicated) replicated |= 1u << a;
  if (position_of(mesh(), rank(), replicated) != 0) return;
  const Stopwatch watch(*this, flow.producer, StepPhase::forward);
  const Array& factors = loss_factors(flow, value.region);
  weighted_sum(factors.data(), value.data.data(), value.data.size(),
               [this, times](double sum) { report_.loss += times * sum; });
}

const Array& RankStep::loss_factors(const Flow& flow, const Region& region) {
  Array& factors = loss_factors_[{flow.tensor, region.offset}];
  if (factors.size() > 0) return factors;
  const Tensor& tensor = program_.model->tensors[flow.tensor];
  factors = Array::outside(static_cast<std::size_t>(region.elements()));
  Filling numbers(factors.data());
  for_each_element(region, tensor.shape, [&](std::size_t, std::int64_t index) {
    numbers.add(loss_factor(tensor, flow.tensor, program_.options.seed, index));
  });
  return factors;
}

}  // namespace turnpoint::step
