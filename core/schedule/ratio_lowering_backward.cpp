// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "core/schedule/ratio_lowerer.h"

namespace turnpoint {

void RatioLowerer::backward(OperatorId id) {
  const Operator& op = model().operators[id];
  for (Role r = 0; r < held_.size(); ++r) {
    if (facts_.has_gradient[id.index])
      backward_on(r, id);
    else if (runs_again(r, id))
      run_again(r, id);
  }
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k);
    if (const std::uint32_t t = facts_.tie_of[a]; t != kNone) return_tied(t);
    const std::uint32_t f = facts_.flow_of[a];
    if (f == kNone) continue;
    const auto& consumers = facts_.uses.flows[f].consumers;
    for (std::size_t c = 0; c < consumers.size(); ++c)
      if (consumers[c].op == id && consumers[c].input == k) done_[f][c] = 1;
    return_gradients(f);
  }
  synchronise(id);
}

// The gradients that came back for an output are added where the first one lies, each as soon as both are there.
PlanValue RatioLowerer::sum_of_gradients(Role r, OperatorId id, std::uint32_t f) {
  std::vector<Value> values;
  for (const Model::Use& use : facts_.uses.flows[f].consumers)
    if (const Value value = held_[r].gradient[facts_.access(use.op, use.input)]; value.valid()) values.push_back(value);
  // Backward comes to the last reader first.
  std::reverse(values.begin(), values.end());
  std::stable_partition(values.begin(), values.end(), [](const Value& value) { return value.buffer != kNone; });
  if (values.size() < 2) return values.empty() ? Value{} : values.front();
  const Value target = values.front();
  const std::uint32_t item = add(PlanTaskKind::turn, r, id, 0);
  for (const Value& value : values) wait(value.item);
  for (std::size_t k = 1; k < values.size(); ++k)
    if (values[k].buffer != kNone) out_.buffers.read(values[k].buffer, target.item);
  read(target.buffer);
  return {item, target.buffer};
}

void RatioLowerer::backward_on(Role r, OperatorId id) {
  const Operator& op = model().operators[id];
  Held& held = held_[r];
  std::vector<Value> gradients, kept;
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f) {
    if (const Value sum = sum_of_gradients(r, id, f); sum.valid()) gradients.push_back(sum);
    if (facts_.uses.flows[f].producer_saves && !op.is_view()) kept.push_back(in_backward(r, held.produced[f]));
  }
  for (std::uint32_t k = 0; k < op.inputs.size() && !op.is_view(); ++k)
    if (op.inputs[k].saved) kept.push_back(in_backward(r, held.read[facts_.access(id, k)]));
  if (runs_again(r, id)) run_again(r, id);
  const std::uint32_t item = add(PlanTaskKind::backward, r, id, held.cost[id.index][ComputePart::backward]);
  held.backward = item;
  for (const Value& value : kept) need(value);
  for (const Value& value : gradients) need(value);
  read(held.again[id.index] == kNone ? held.internal[id.index] : held.internal_again[id.index]);
  wait(held.again[id.index]);
  wait(held.forward[id.index]);
  wait(held.gate);
  // The loss gives its gradient to whoever made a result of the network.
  if (const std::int64_t result = result_bytes(r, id); gradients.empty() && result > 0)
    gradients.push_back({item, buffer(result, BufferKind::activation, item, r)});
  if (const std::int64_t count = charges_.owned(id, lengths(r, id)); count > 0)
    held.weight[id.index] = held.weight_sum[id.index] = {
        item, buffer(count * charges_.counted().gradient, BufferKind::activation, item, r)};
  pass_back(r, id, item, gradients.empty() ? Value{} : gradients.front());
}

/// Where backward finds what forward left there.
PlanValue RatioLowerer::in_backward(Role r, Value value) {
  Held& held = held_[r];
  const auto maker = held.maker.find(value.buffer);
  if (maker == held.maker.end()) return value;
  run_again(r, maker->second);
  return held.made_again.at(value.buffer);
}

// From its inputs as backward finds them: all that it made in forward is made anew. Not before what backward did before
// has ended: what is made early lives long.
void RatioLowerer::run_again(Role r, OperatorId id) {
  Held& held = held_[r];
  if (held.again[id.index] != kNone) return;
  const Operator& op = model().operators[id];
  std::vector<Value> needed;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k)
    needed.push_back(in_backward(r, held.read[facts_.access(id, k)]));
  const std::uint32_t item = add(PlanTaskKind::again, r, id, held.cost[id.index][ComputePart::recompute]);
  for (const Value& value : needed) need(value);
  wait(held.gate);
  wait(held.backward);
  held.again[id.index] = item;
  if (held.internal[id.index] != kNone)
    held.internal_again[id.index] =
        buffer(out_.buffers.bytes[held.internal[id.index]], BufferKind::activation, item, r);
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f) {
    const std::uint32_t before = held.produced[f].buffer;
    held.made_again[before] = {item, buffer(out_.buffers.bytes[before], BufferKind::activation, item, r)};
  }
}

void RatioLowerer::pass_back(Role r, OperatorId id, std::uint32_t item, const Value& through_view) {
  const Operator& op = model().operators[id];
  if (op.is_view() && !through_view.valid()) return;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k), t = facts_.tie_of[a];
    if (t != kNone) {
      const std::int64_t bytes =
          std::int64_t(charges_.elements(op, op.inputs[k], lengths(r, id))) * charges_.real().gradient;
      held_[r].tied[t] = {item, buffer(bytes, BufferKind::activation, item, r)};
    } else if (facts_.flow_of[a] != kNone && model().tensors[op.inputs[k].tensor].requires_gradient) {
      const std::uint32_t bytes =
          op.is_view() ? through_view.buffer
                       : buffer(charges_.bytes_of(op, op.inputs[k], lengths(r, id)), BufferKind::activation, item, r);
      held_[r].gradient[a] = {item, bytes};
    }
  }
}

// Gradients that lie alike are added and travel as one, once the last of them is there and has crossed the cuts around.
void RatioLowerer::return_gradients(std::uint32_t f) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const Operator& producer = model().operators[flow.producer];
  std::vector<char> held_up(flow.consumers.size(), 0);
  std::erase_if(left_back_[f], [&](const Here& here) {
    const auto& uses = here.exchange->uses;
    const auto waits = [&](std::uint32_t use) { return !done_[f][use] || held_up[use]; };
    if (std::any_of(uses.begin(), uses.end(), waits)) {
      for (const std::uint32_t use : uses) held_up[use] = 1;
      return false;
    }
    const std::uint32_t item =
        add_exchange(PlanTaskKind::reshard_back, here, here.exchange->seconds, here.exchange->bytes);
    out_.tasks.back().tensor = flow.tensor;
    const auto& members = roles_.sites[here.site].roles;
    const auto gradient = [&](Role r, std::uint32_t use) -> Value& {
      return held_[r].gradient[facts_.access(flow.consumers[use].op, flow.consumers[use].input)];
    };
    for (const Role r : members)
      for (const std::uint32_t use : uses) need(gradient(r, use));
    for (const Role r : members) {
      for (const std::uint32_t use : uses) gradient(r, use) = {item, kNone};
      const std::int64_t bytes = charges_.bytes_of(producer, producer.outputs[flow.output], lengths(r, flow.producer));
      gradient(r, uses.front()).buffer = buffer(bytes, BufferKind::copy, item, r);
    }
    return true;
  });
}

void RatioLowerer::return_tied(std::uint32_t t) {
  const ParameterTie& tie = facts_.uses.ties[t];
  const Operator& owner = model().operators[tie.owner];
  for (const Here& here : by_tie_[t]) {
    if (here.exchange->what != RatioExchange::What::tied_gradient) continue;
    const std::uint32_t item =
        add_exchange(PlanTaskKind::gradients, here, here.exchange->seconds, here.exchange->bytes);
    const auto& members = roles_.sites[here.site].roles;
    for (const Role r : members) need(held_[r].tied[t]);
    for (const Role r : members) {
      const auto elements =
          std::int64_t(charges_.elements(owner, owner.inputs[tie.owner_input], lengths(r, tie.owner)));
      held_[r].tied[t] = {item, buffer(elements * charges_.real().gradient, BufferKind::copy, item, r)};
    }
  }
}

// What other operators' uses of its weights gave back is added before anything is exchanged.
void RatioLowerer::synchronise(OperatorId id) {
  if (!held_.front().weight[id.index].valid()) return;
  updates_.push_back(id);
  for (Role r = 0; r < held_.size(); ++r)
    for (std::uint32_t t = 0; t < facts_.uses.ties.size(); ++t) {
      if (facts_.uses.ties[t].owner != id || !held_[r].tied[t].valid()) continue;
      const std::uint32_t item = add(PlanTaskKind::turn, r, id, 0);
      need(held_[r].tied[t]);
      wait(held_[r].weight_sum[id.index].item);
      held_[r].weight_sum[id.index].item = item;
    }
  // Of what both halves compute alike each cuts out its share.
  if (!new_weights_of_[id.index].empty())
    for (Role r = 0; r < held_.size(); ++r)
      if (!is_scattered_inside(r, id, kNone)) keep_shard(r, id, held_[r].weight_sum[id.index].item);
  for (const Here& here : weights_of_[id.index])
    if (around(id, here.site) == kNone) join(here);
}

/// Whether gradients of the operator's weights are still to be scattered among the role's devices, at a cut inside that
/// of this site; kNone: at any.
bool RatioLowerer::is_scattered_inside(Role r, OperatorId id, std::uint32_t site) const {
  const auto& places = weights_of_[id.index];
  return std::any_of(places.begin(), places.end(), [&](const Here& here) {
    const auto& roles = roles_.sites[here.site].roles;
    return (site == kNone || here.site > site) && here.exchange->part == NetworkPart::reduce_scatter &&
           std::find(roles.begin(), roles.end(), r) != roles.end();
  });
}

// What the device updates is all that it keeps of the gradient.
void RatioLowerer::keep_shard(Role r, OperatorId id, std::uint32_t item) {
  CostBreakdown cost = held_[r].cost[id.index];
  const std::int64_t bytes = cost[MemoryPart::gradients];
  if (bytes == out_.buffers.bytes[held_[r].weight[id.index].buffer]) return;
  held_[r].weight[id.index] = {item, buffer(bytes, BufferKind::copy, item, r)};
}

// The nearest cut around one at which the operator's gradients are summed as well.
std::uint32_t RatioLowerer::around(OperatorId id, std::uint32_t site) const {
  const auto& places = weights_of_[id.index];
  while (site != 0) {
    site = roles_.sites[site].parent;
    if (std::any_of(places.begin(), places.end(), [&](const Here& here) { return here.site == site; })) return site;
  }
  return kNone;
}

void RatioLowerer::join(const Here& here) {
  const bool scattered = here.exchange->part == NetworkPart::reduce_scatter;
  Message& message = messages_[here.site][scattered ? 1 : 0];
  message.members.push_back(here.exchange);
  message.bytes += here.exchange->bytes;
  message.filled += here.exchange->both / (scattered ? 1 : 2);
  const double full = scenario_.by_library() ? double(scenario_.settings.bucket_bytes) : 0;
  if (message.filled >= full * (1 - 1e-9)) send(here.site, message);
}

void RatioLowerer::send(std::uint32_t site) {
  for (Message& message : messages_[site]) send(site, message);
}

void RatioLowerer::send(std::uint32_t site, Message& filled) {
  const Message message = std::exchange(filled, {});
  if (message.members.empty()) return;
  double seconds = 0;
  for (const RatioExchange* member : message.members) seconds += member->seconds;
  const std::uint32_t item =
      add_exchange(PlanTaskKind::gradients, {site, message.members.back()}, seconds, message.bytes);
  for (const Role r : roles_.sites[site].roles)
    for (const RatioExchange* member : message.members) {
      const OperatorId id = member->op;
      std::uint32_t& summed = held_[r].weight_sum[id.index].item;
      need({summed, held_[r].weight[id.index].buffer});
      summed = item;
      if (member->part == NetworkPart::reduce_scatter && !is_scattered_inside(r, id, site)) keep_shard(r, id, item);
    }
  for (const RatioExchange* member : message.members)
    for (const Here& inner : weights_of_[member->op.index])
      if (around(member->op, inner.site) == site) join(inner);
}

void RatioLowerer::update(Role r, OperatorId id) {
  Held& held = held_[r];
  add(PlanTaskKind::update, r, id, held.cost[id.index][ComputePart::update]);
  need({held.weight_sum[id.index].item, held.weight[id.index].buffer});
  for (std::uint32_t t = 0; t < facts_.uses.ties.size(); ++t)
    if (facts_.uses.ties[t].owner == id) wait(held.tied[t].item);
  wait(held.gate);
  held.weight_sum[id.index].item = last();
}

// Behind all roles' updates, from the innermost cut outwards: what a half hands on it has to have.
void RatioLowerer::gather(OperatorId id) {
  const auto& places = new_weights_of_[id.index];
  for (auto here = places.rbegin(); here != places.rend(); ++here) {
    const std::uint32_t item =
        add_exchange(PlanTaskKind::new_weights, *here, here->exchange->seconds, here->exchange->bytes);
    for (const Role r : roles_.sites[here->site].roles) {
      wait(held_[r].weight_sum[id.index].item);
      held_[r].weight_sum[id.index].item = item;
    }
  }
}

}  // namespace turnpoint
