// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/schedule/plan_lowerer.h"

namespace turnpoint {

// Blocks in an order in which every block comes behind those it waits for; on each stage min(p - 1 - s, m) forwards,
// then one forward and one backward in turn, then the backwards that are left (1F1B).
void PlanLowerer::run_pipeline() {
  const auto stages = resolved_.stages();
  const std::int32_t batches = resolved_.micro_batches();
  passes_.assign(std::size_t(batches), Pass(facts_, resolved_));
  operators_of_.resize(stages);
  for (std::size_t i = 0; i < model_.operators.size(); ++i)
    operators_of_[resolved_.role_of(OperatorId(i))].push_back(OperatorId(i));
  stage_gate_.assign(stages, kNone);
  tied_user_gradient_.resize(resolved_.tied_sums().size());
  struct Done {
    std::int32_t forwards = 0, backwards = 0;
  };
  std::vector<Done> done(stages);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t s = 0; s < stages; ++s) {
      Done& me = done[s];
      const std::int32_t warm_up = std::min<std::int32_t>(std::int32_t(stages - 1 - s), batches);
      for (;;) {
        const bool next_forward =
            me.forwards < batches && (me.forwards < warm_up || me.forwards - warm_up == me.backwards);
        if (next_forward) {
          if (s > 0 && done[s - 1].forwards <= me.forwards) break;
          forward_block(s, me.forwards++);
        } else if (me.backwards < batches) {
          if (s + 1 < stages && done[s + 1].backwards <= me.backwards) break;
          backward_block(s, me.backwards++);
        } else {
          break;
        }
        moved = true;
      }
    }
  }
}

void PlanLowerer::begin_block(std::uint32_t stage, std::int32_t batch) {
  batch_ = batch;
  pass_ = &passes_[std::size_t(batch)];
  rerun_layers_.clear();
  open_block(stage, stage_gate_[stage]);
}

void PlanLowerer::forward_block(std::uint32_t stage, std::int32_t batch) {
  begin_block(stage, batch);
  // Every stage loads the data that it reads itself.
  for (std::uint32_t f = 0; stage > 0 && f < facts_.uses.flows.size(); ++f) {
    const TensorFlow& flow = facts_.uses.flows[f];
    if (model_.tensors[flow.tensor].role == TensorRole::activation || resolved_.role_of(flow.producer) == stage)
      continue;
    const std::int64_t bytes = bytes_beyond(f, stage - 1);
    if (bytes == 0) continue;
    const std::uint32_t item = add(PlanTaskKind::forward, Lane::none, flow.producer, 0);
    wait(block_gate_);
    pass_->received[f] = {item, buffer(bytes, BufferKind::activation, item)};
  }
  for (const OperatorId op : operators_of_[stage]) forward(op);
  stage_gate_[stage] = close_block();
  if (stage + 1 < resolved_.stages()) send_on(stage);
}

void PlanLowerer::backward_block(std::uint32_t stage, std::int32_t batch) {
  begin_block(stage, batch);
  const auto& operators = operators_of_[stage];
  for (std::size_t i = operators.size(); i-- > 0;) {
    const int layer = resolved_.layer(operators[i]);
    if (plan_.pipeline->recompute && layer >= 0 && rerun_layers_.insert(layer).second) run_layer_again(layer);
    backward(operators[i]);
  }
  send_messages();
  stage_gate_[stage] = close_block();
  if (stage > 0) send_back(stage);
  if (batch + 1 == resolved_.micro_batches()) update_block(stage, stage_gate_[stage]);
}

// A layer (or the core of an attention) that kept its inputs only runs forward again when everything issued before it
// has been computed; the first one of a block, when the gradients have come from the stage behind.
void PlanLowerer::run_layer_again(int layer) {
  rerun_gate_ = pass_->gradients_here;
  for (std::uint32_t i = last(); i + 1 > block_begin_ && i < out_.items.size(); --i)
    if (out_.items.lane[i] == 2 * role_) {
      rerun_gate_ = i;
      break;
    }
  for (const OperatorId op : operators_of_[role_])
    if (resolved_.layer(op) == layer) forward(op, true);
}

bool PlanLowerer::crosses(std::uint32_t f, std::uint32_t stage) const {
  const TensorFlow& flow = facts_.uses.flows[f];
  if (model_.tensors[flow.tensor].role != TensorRole::activation || resolved_.role_of(flow.producer) > stage)
    return false;
  return std::any_of(flow.consumers.begin(), flow.consumers.end(),
                     [&](const Model::Use& use) { return resolved_.role_of(use.op) > stage; });
}

// In the layout in which it is read behind the boundary; 0: by nobody.
std::int64_t PlanLowerer::bytes_beyond(std::uint32_t f, std::uint32_t stage) const {
  for (const auto& use : facts_.uses.flows[f].consumers)
    if (resolved_.role_of(use.op) > stage) return resolved_.read_bytes[facts_.access(use.op, use.input)];
  return 0;
}

void PlanLowerer::send_on(std::uint32_t stage) {
  const std::uint32_t item = add(PlanTaskKind::send, Lane::communication, {}, plan_.pipeline->send_s[stage]);
  out_.items.other_lane[item] = 2 * (stage + 1) + 1;
  for (std::uint32_t f = 0; f < facts_.uses.flows.size(); ++f) {
    if (!crosses(f, stage)) continue;
    need(resolved_.role_of(facts_.uses.flows[f].producer) == stage ? pass_->shared[f] : pass_->received[f]);
    const std::int64_t bytes = bytes_beyond(f, stage);
    out_.tasks[item].bytes += double(bytes);
    role_ = stage + 1;
    pass_->received[f] = {item, buffer(bytes, BufferKind::copy, item)};
    role_ = stage;
  }
}

void PlanLowerer::send_back(std::uint32_t stage) {
  const std::uint32_t item =
      add(PlanTaskKind::send_back, Lane::communication, {}, plan_.pipeline->send_back_s[stage - 1]);
  out_.items.other_lane[item] = 2 * (stage - 1) + 1;
  pass_->gradients_here = item;
  wait(stage_gate_[stage]);
  for (std::uint32_t f = 0; f < facts_.uses.flows.size(); ++f) {
    if (pass_->gradient[f] == kNone || !crosses(f, stage - 1)) continue;
    for (std::uint32_t c = pass_->gradient[f]; c != kNone; c = contributions_[c].before) need(contributions_[c].value);
    const std::int64_t bytes = bytes_beyond(f, stage - 1);
    out_.tasks[item].bytes += double(bytes);
    role_ = stage - 1;
    pass_->gradient[f] = kNone;
    contribute(f, {item, buffer(bytes, BufferKind::copy, item)});
    role_ = stage;
  }
}

// The gradient of a weight whose owner is on another stage: kept here until the two are added.
void PlanLowerer::tied_user(OperatorId id, std::uint32_t access, std::uint32_t item) {
  const auto& sums = resolved_.tied_sums();
  for (std::size_t t = 0; t < sums.size(); ++t) {
    if (sums[t].user_op != id || facts_.uses.ties[facts_.tie_of[access]].owner != sums[t].owner_op) continue;
    Value& gradient = tied_user_gradient_[t];
    if (gradient.buffer == kNone) {
      gradient.buffer = buffer(sums[t].gradient_bytes, BufferKind::activation, item);
      out_.counted[gradient.buffer] = 1;
    }
    read(gradient.buffer, item);
    gradient.item = item;
  }
}

void PlanLowerer::sum_between_stages(OperatorId id, std::vector<Value>& needed) {
  const auto& sums = resolved_.tied_sums();
  for (std::size_t t = 0; t < sums.size(); ++t) {
    if (sums[t].owner_op != id || !tied_user_gradient_[t].valid()) continue;
    const std::uint32_t item = add(PlanTaskKind::tied_sum, Lane::communication, id, sums[t].time_s);
    out_.items.other_lane[item] = 2 * std::uint32_t(sums[t].user) + 1;
    for (const Value& value : needed) wait(value.item);
    need(tied_user_gradient_[t]);
    needed.push_back({item, kNone});
  }
}

}  // namespace turnpoint
