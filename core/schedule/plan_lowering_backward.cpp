// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "core/schedule/plan_lowerer.h"

namespace turnpoint {

// The repeated forward steps of a resharding; its source itself where there are none.
PlanValue PlanLowerer::repeat(std::uint32_t r, OperatorId op, const Value& from) {
  const PlanReshard& reshard = plan_.reshards[r];
  fetched_ = fetched_ || !reshard.repeated.empty();
  return follow(PlanTaskKind::reshard_again, op, reshard.tensor, reshard.repeated, from, fetch_gate());
}

PlanValue PlanLowerer::produced_in_backward(std::uint32_t f) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const OperatorId producer = flow.producer;
  if (flow.producer_is_view) {
    for (std::uint32_t k = 0; k < model_.operators[producer].inputs.size(); ++k)
      if (const std::uint32_t a = facts_.access(producer, k); facts_.flow_of[a] != kNone)
        return input_in_backward(producer, a);
  }
  if (const std::uint32_t r = resolved_.restored_by[f]; r != kNone) {
    Value& made = pass_->produced_again[f];
    if (made.valid()) return made;
    const auto& use = flow.consumers.front();
    const Value kept = resolved_.stored(f) ? pass_->shared[f] : pass_->read[facts_.access(use.op, use.input)];
    fetched_ = true;
    return made = follow(PlanTaskKind::reshard_again, producer, flow.tensor, plan_.reshards[r].restored, kept,
                         fetch_gate());
  }
  if (!resolved_.runs_again(f)) return pass_->produced[f];
  run_again(producer);
  return pass_->produced_again[f];
}

PlanValue PlanLowerer::shared_in_backward(std::uint32_t f) {
  const std::uint32_t s = resolved_.shared_reshard[f];
  if (s == kNone) return produced_in_backward(f);
  if (!resolved_.from_source(s)) return pass_->shared[f];
  if (!pass_->shared_again[f].valid())
    pass_->shared_again[f] = repeat(s, facts_.uses.flows[f].producer, produced_in_backward(f));
  return pass_->shared_again[f];
}

// The tensor of an access as backward of its reader finds it: kept, brought into shape again, or made again.
PlanValue PlanLowerer::input_in_backward(OperatorId id, std::uint32_t a) {
  const std::uint32_t f = facts_.flow_of[a], r = resolved_.reshard_of[a];
  const auto source = [&] {
    if (resolved_.run_of(facts_.uses.flows[f].producer) != resolved_.run_of(id)) return pass_->base[a];
    return resolved_.stored(f) ? shared_in_backward(f) : produced_in_backward(f);
  };
  if (r == kNone) return source();
  if (!resolved_.from_source(r)) return pass_->read[a];
  if (!pass_->read_again[a].valid()) pass_->read_again[a] = repeat(r, id, source());
  return pass_->read_again[a];
}

// Its inputs as backward finds them, its outputs and internals anew.
void PlanLowerer::run_again(OperatorId id) {
  if (pass_->again[id.index] != kNone) return;
  const Operator& op = model_.operators[id];
  std::vector<Value> needed;
  backward_weights(id, needed);
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k);
    if (const std::uint32_t t = facts_.tie_of[a]; t != kNone)
      tied_in_backward(id, a, t, needed);
    else if (facts_.flow_of[a] != kNone)
      needed.push_back(input_in_backward(id, a));
  }
  CostBreakdown cost = plan_.operators[id.index].cost;
  const std::uint32_t item = add(PlanTaskKind::again, Lane::compute, id, cost[ComputePart::recompute]);
  for (const Value& value : needed) need(value);
  wait(fetch_gate());
  fetched_ = true;
  pass_->again[id.index] = item;
  if (resolved_.internals_again(id))
    pass_->internal_again[id.index] = buffer(resolved_.internal_bytes[id.index], BufferKind::activation, item);
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f)
    if (resolved_.runs_again(f))
      pass_->produced_again[f] = {item, buffer(resolved_.produced_bytes[f], BufferKind::activation, item)};
}

// Gathered once for an operator's backward and for its running again before that.
void PlanLowerer::backward_weights(OperatorId id, std::vector<Value>& needed) {
  auto& weights = pass_->weights[id.index];
  if (!pass_->gathered[id.index]) {
    pass_->gathered[id.index] = 1;
    gather(id, kNone, weights);
  }
  needed.insert(needed.end(), weights.begin(), weights.end());
}

void PlanLowerer::backward(OperatorId id) {
  std::vector<Value> gradients, needed;
  const std::uint32_t begin = facts_.first_flow[id.index], end = facts_.first_flow[id.index + 1];
  for (std::uint32_t f = begin; f < end; ++f)
    if (const Value gradient = gradient_of_output(id, f); gradient.valid()) gradients.push_back(gradient);
  collect_saved(id, needed);
  // A repeated resharding that nobody asked for is paid for all the same.
  for (std::uint32_t f = begin; f < end; ++f)
    if (const std::uint32_t s = resolved_.shared_reshard[f]; s != kNone && !plan_.reshards[s].repeated.empty())
      shared_in_backward(f);
  std::uint32_t item = kNone;
  if (facts_.has_gradient[id.index]) {
    CostBreakdown cost = plan_.operators[id.index].cost;
    item =
        add(PlanTaskKind::backward, resolved_.works(id) ? Lane::compute : Lane::none, id, cost[ComputePart::backward]);
    for (const Value& value : needed) need(value);
    for (const Value& value : gradients) need(value);
    wait(pass_->forward[id.index]);
    wait(block_gate_);
    fetched_for(item);
    // The loss gives its gradient to whoever made a result of the network.
    if (gradients.empty() && resolved_.result_bytes[id.index] > 0)
      gradients.push_back({item, buffer(resolved_.result_bytes[id.index], BufferKind::activation, item)});
    pass_gradients_on(id, item, gradients.empty() ? Value{} : gradients.front());
  } else {
    fetched_for(last());
  }
  if (unread_ == UnreadCopies::kept) hold_unread(id);
  synchronise(id, item != kNone ? item : pass_->forward[id.index]);
}

// Copies of its output that the plan counts because a reader's backward could read them. What is made again later is
// not kept.
void PlanLowerer::hold_unread(OperatorId id) {
  if (model_.operators[id].is_view()) return;
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f) {
    const auto& consumers = facts_.uses.flows[f].consumers;
    const std::uint32_t s = resolved_.shared_reshard[f];
    const bool kept = (s == kNone || !resolved_.from_source(s)) && !resolved_.runs_again(f);
    const bool saved = std::any_of(consumers.begin(), consumers.end(), [&](const Model::Use& use) {
      return model_.operators[use.op].inputs[use.input].saved;
    });
    if (resolved_.stored(f) && kept && saved) unread_until_.emplace_back(pass_->shared[f].buffer, last());
  }
}

// The sum of the gradients that came back for an output, in the producer's layout. They are added where the first one
// lies, each as soon as both are there.
PlanValue PlanLowerer::gradient_of_output(OperatorId id, std::uint32_t f) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const std::uint32_t latest = pass_->gradient[f], s = resolved_.shared_reshard[f];
  if (latest == kNone) return {};
  Value sum = contributions_[latest].value;
  if (contributions_[latest].before != kNone) {
    std::uint32_t first = latest;
    while (contributions_[first].before != kNone) first = contributions_[first].before;
    const Value target = contributions_[first].value;
    const std::uint32_t item = add(PlanTaskKind::turn, Lane::none, id, 0);
    for (std::uint32_t c = latest; c != kNone; c = contributions_[c].before) wait(contributions_[c].value.item);
    for (std::uint32_t c = latest; c != first; c = contributions_[c].before)
      read(contributions_[c].value.buffer, target.item);
    read(target.buffer, item);
    sum = {item, target.buffer};
  }
  if (s == kNone) return sum;
  return follow(PlanTaskKind::reshard_back, id, flow.tensor, plan_.reshards[s].gradient, sum, kNone);
}

// What backward of an operator reads besides gradients, with all that is fetched for it.
void PlanLowerer::collect_saved(OperatorId id, std::vector<Value>& needed) {
  const Operator& op = model_.operators[id];
  const bool runs = facts_.has_gradient[id.index] && !op.is_view();
  bool reads_weights = false;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k), r = resolved_.reshard_of[a];
    const bool saved = op.inputs[k].saved && runs, repeated = r != kNone && !plan_.reshards[r].repeated.empty();
    if (const std::uint32_t t = facts_.tie_of[a]; t != kNone) {
      if (saved || repeated) tied_in_backward(id, a, t, needed);
    } else if (facts_.flow_of[a] == kNone) {
      reads_weights = reads_weights || saved;
    } else if (saved || repeated) {
      const Value value = input_in_backward(id, a);
      if (saved) needed.push_back(value);
    }
  }
  if (reads_weights) backward_weights(id, needed);
  for (std::size_t before = needed.size() + 1; before != needed.size();) {
    before = needed.size();
    gather(id, kNone, needed);  // whatever of the plan's gathers nobody asked for
  }
  CostBreakdown cost = plan_.operators[id.index].cost;
  if (cost[ComputePart::recompute] > 0) run_again(id);
  if (!runs) return;
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f)
    if (facts_.uses.flows[f].producer_saves) needed.push_back(produced_in_backward(f));
  if (resolved_.internals_again(id) && pass_->again[id.index] != kNone)
    needed.push_back({pass_->again[id.index], pass_->internal_again[id.index]});
  else if (pass_->internal[id.index] != kNone)
    needed.push_back({pass_->forward[id.index], pass_->internal[id.index]});
}

// Brought once for a backward and for its operator's running again before that, as its own weights are.
void PlanLowerer::tied_in_backward(OperatorId id, std::uint32_t a, std::uint32_t t, std::vector<Value>& needed) {
  const ParameterTie& tie = facts_.uses.ties[t];
  std::vector<Value>& found = pass_->tied[a];
  if (found.empty() && resolved_.role_of(tie.owner) != role_) {
    gather_copy(id, a, found);
    needed.insert(needed.end(), found.begin(), found.end());
    return;
  }
  if (found.empty()) {
    const std::uint32_t r = resolved_.reshard_of[a];
    std::vector<Value> gathered;
    gather(tie.owner, resolved_.group_of_tie[t], gathered);
    const Value held = gathered.empty() ? pass_->base[a] : gathered.front();
    if (r == kNone) {
      found = {held};
    } else if (resolved_.from_source(r)) {
      found = {repeat(r, id, held)};
    } else {
      found = {pass_->read[a]};
      if (!gathered.empty()) found.push_back(held);
    }
  }
  std::copy_if(found.begin(), found.end(), std::back_inserter(needed),
               [](const Value& value) { return value.valid(); });
}

void PlanLowerer::contribute(std::uint32_t f, const Value& value) {
  contributions_.push_back({value, pass_->gradient[f]});
  pass_->gradient[f] = std::uint32_t(contributions_.size() - 1);
}

// Added to the first one's buffer, each as soon as both are there.
void PlanLowerer::contribute_tied(const ParameterTie& tie, Value gradient) {
  auto& sums = pass_->tied_gradients[tie.owner.index];
  const auto first = std::find_if(sums.begin(), sums.end(), [&](const TiedGradient& sum) {
    return sum.owner_input == tie.owner_input && sum.value.buffer != kNone;
  });
  if (first != sums.end()) {
    read(gradient.buffer, first->value.item);
    gradient.buffer = kNone;
  }
  sums.push_back({tie.owner_input, gradient});
}

void PlanLowerer::pass_gradients_on(OperatorId id, std::uint32_t item, const Value& through_view) {
  const Operator& op = model_.operators[id];
  if (op.is_view() && !through_view.valid()) return;
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k), f = facts_.flow_of[a], r = resolved_.reshard_of[a];
    const std::uint32_t t = facts_.tie_of[a];
    if (t != kNone && resolved_.role_of(facts_.uses.ties[t].owner) != role_) {
      tied_user(id, a, item);
      continue;
    }
    if (t == kNone && (f == kNone || !model_.tensors[op.inputs[k].tensor].requires_gradient)) continue;
    Value gradient{item, through_view.buffer};
    if (!op.is_view())
      gradient.buffer =
          buffer(t != kNone ? resolved_.tied_gradient_bytes(a) : resolved_.read_bytes[a], BufferKind::activation, item);
    if (r != kNone)
      gradient =
          follow(PlanTaskKind::reshard_back, id, plan_.reshards[r].tensor, plan_.reshards[r].gradient, gradient, kNone);
    if (t == kNone)
      contribute(f, gradient);
    else
      contribute_tied(facts_.uses.ties[t], gradient);
  }
}

// Gradients of an operator's parameters on their way to the update, and the update behind the last micro-batch.
void PlanLowerer::synchronise(OperatorId id, std::uint32_t backward) {
  const auto [begin, end] = resolved_.groups_of(id);
  if (begin == end) return;
  const Update how = plan_.operators[id.index].choice.update;
  const bool last_batch = batch_ + 1 == resolved_.micro_batches();
  // What other operators' uses of its weights gave back is added before anything is exchanged.
  const auto& tied = pass_->tied_gradients[id.index];
  const std::uint32_t whole = tied.empty() ? backward : add(PlanTaskKind::turn, Lane::none, id, 0);
  if (whole != backward) wait(backward);
  for (const TiedGradient& sum : tied) need(sum.value);
  for (std::uint32_t g = begin; g < end; ++g) {
    const auto& group = resolved_.groups[g];
    const bool scattered = group.shards > 1 && (how == Update::sharded || how == Update::sharded_weights);
    Value gradient{whole, held_gradient_[g].buffer};
    if (scattered || gradient.buffer == kNone) {
      gradient.buffer = buffer(group.full_gradient_bytes, BufferKind::activation, backward);
      if (!scattered) out_.counted[gradient.buffer] = 1;
    } else {
      // What this micro-batch adds stands beside the sum for a moment, as autograd and the probe have it.
      read(buffer(group.full_gradient_bytes, BufferKind::activation, backward), backward);
      read(gradient.buffer, backward);
    }
    if (!scattered) held_gradient_[g] = gradient;
    if (scattered || last_batch) exchange({id, g, gradient, scattered});
  }
  if (last_batch) updates_[role_].push_back(id);
}

void PlanLowerer::exchange(const Waiting& gradient) {
  if (plan_.pipeline && plan_.pipeline->sums_behind && !gradient.scattered)
    summed_behind_[role_].push_back(gradient);
  else
    exchange_now(gradient);
}

// At once, or with the others of its message.
void PlanLowerer::exchange_now(const Waiting& gradient) {
  const auto& steps = resolved_.groups[gradient.group].steps->sync;
  if (steps.empty() || steps.front().message_bytes <= 0) {
    held_gradient_[gradient.group] = reduce(gradient, kNone);
    return;
  }
  const ReshardStep& step = steps.front();
  auto at = std::find_if(messages_.begin(), messages_.end(), [&](const Message& message) {
    return message.move == step.move && message.axes == step.axes;
  });
  if (at == messages_.end()) at = messages_.insert(at, {step.move, step.axes, 0, {}});
  at->members.push_back(gradient);
  at->bytes += step.bytes;
  if (at->bytes >= step.message_bytes * (1 - 1e-9)) send(*at);
}

void PlanLowerer::send(Message& message) {
  if (message.members.empty()) return;
  const std::uint32_t gate = message.members.back().gradient.item;
  for (const Waiting& member : message.members) held_gradient_[member.group] = reduce(member, gate);
  message.members.clear();
  message.bytes = 0;
}

// What backward has left of messages that did not fill.
void PlanLowerer::send_messages() {
  for (Message& message : messages_) send(message);
  messages_.clear();
}

PlanValue PlanLowerer::reduce(const Waiting& waiting, std::uint32_t gate) {
  const auto& group = resolved_.groups[waiting.group];
  const auto& steps = group.steps->sync;
  const Value held = held_gradient_[waiting.group];
  Value value = waiting.gradient;
  if (steps.empty()) {
    value.item = add(PlanTaskKind::turn, Lane::none, waiting.op, 0);
    need(waiting.gradient);
  }
  for (std::size_t k = 0; k < steps.size(); ++k) {
    const ReshardStep& step = steps[k];
    const std::uint32_t item = add_step(PlanTaskKind::gradients, waiting.op, step);
    need(value);
    value.item = item;
    if (k == 0) {
      wait(sums_gate_);
      if (gate != waiting.gradient.item) wait(gate);
      for (const TiedGradient& sum : pass_->tied_gradients[waiting.op.index]) wait(sum.value.item);
    }
    // Stage 1 of ZeRO keeps whole gradients and sums its shard where they lie.
    if (step.move == ReshardMove::all_reduce || !waiting.scattered) continue;
    const bool shard = k + 1 == steps.size() || steps[k + 1].move == ReshardMove::all_reduce;
    if (shard && held.buffer != kNone) {
      value.buffer = held.buffer;  // added to that of the micro-batches before
      need(held);
    } else {
      value.buffer = buffer(shard ? group.shard_gradient_bytes : group.full_gradient_bytes, BufferKind::copy, item);
      if (shard) out_.counted[value.buffer] = 1;
    }
  }
  return value;
}

// All updates of a role, in the order in which backward came to their operators.
void PlanLowerer::update_block(std::uint32_t role, std::uint32_t gate) {
  open_block(role, gate);
  for (const OperatorId op : updates_[role]) update(op);
}

void PlanLowerer::update(OperatorId id) {
  const PlanOperator& planned = plan_.operators[id.index];
  const auto [begin, end] = resolved_.groups_of(id);
  std::vector<Value> needed(held_gradient_.begin() + begin, held_gradient_.begin() + end);
  CostBreakdown cost = planned.cost;
  const double offload = cost[NetworkPart::offload];
  sum_between_stages(id, needed);
  std::uint32_t state = kNone;
  if (offload > 0) {
    const std::uint32_t item = add(PlanTaskKind::from_host, Lane::between, id, offload / 2);
    out_.tasks.back().bytes = double(resolved_.visiting_bytes(id));
    wait(fetch_gate());
    fetched_ = true;
    state = buffer(resolved_.visiting_bytes(id), BufferKind::workspace, item);
    needed.push_back({item, state});
  }
  const double seconds = cost[ComputePart::update];
  const std::uint32_t item = add(PlanTaskKind::update, seconds > 0 ? Lane::compute : Lane::none, id, seconds);
  for (const Value& value : needed) need(value);
  wait(block_gate_);
  if (offload > 0) {
    add(PlanTaskKind::to_host, Lane::between, id, offload - offload / 2);
    out_.tasks.back().bytes = double(resolved_.visiting_bytes(id));
    need({item, state});
    fetched_for(last());
  }
  if (planned.choice.gathers_first()) return;
  for (std::uint32_t g = begin; g < end; ++g)
    for (const ReshardStep& step : resolved_.groups[g].steps->spread) {
      add_step(PlanTaskKind::new_weights, id, step);
      wait(item);
    }
}

}  // namespace turnpoint
