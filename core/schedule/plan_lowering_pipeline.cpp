// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/plan/one_stage.h"
#include "core/plan/pipeline_order.h"
#include "core/schedule/plan_lowerer.h"

namespace turnpoint {

// Blocks in an order in which every block comes behind those it waits for; on each stage by pipeline_order().
void PlanLowerer::run_pipeline() {
  const auto stages = resolved_.stages(), runs = resolved_.runs();
  const std::int32_t batches = resolved_.micro_batches();
  passes_.assign(std::size_t(batches), Pass(facts_, resolved_));
  operators_of_.resize(runs);
  for (std::size_t i = 0; i < model_.operators.size(); ++i)
    operators_of_[resolved_.run_of(OperatorId(i))].push_back(OperatorId(i));
  stage_gate_.assign(stages, kNone);
  tied_user_gradient_.resize(resolved_.tied_sums().size());
  std::vector<std::vector<PipelineStep>> order;
  for (std::uint32_t s = 0; s < stages; ++s)
    order.push_back(pipeline_order(int(s), int(stages), int(runs / stages), batches, plan_.pipeline->forwards_first));
  std::vector<std::size_t> done(stages, 0);
  std::vector<std::int32_t> forwards(runs, 0), backwards(runs, 0);  // by run; each goes through them in turn
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t s = 0; s < stages; ++s)
      for (; done[s] < order[s].size(); ++done[s], moved = true) {
        const PipelineStep& step = order[s][done[s]];
        const std::uint32_t run = std::uint32_t(step.chunk) * stages + s;
        if (step.forward) {
          if (run > 0 && forwards[run - 1] <= step.batch) break;
          forward_block(run, step.batch);
          ++forwards[run];
        } else {
          if (run + 1 < runs && backwards[run + 1] <= step.batch) break;
          backward_block(run, step.batch);
          ++backwards[run];
          if (done[s] + 1 < order[s].size()) continue;
          sum_behind(s);
          update_block(s, stage_gate_[s]);
        }
      }
  }
}

void PlanLowerer::begin_block(std::uint32_t run, std::int32_t batch) {
  const std::uint32_t stage = stage_of(run);
  run_ = run;
  batch_ = batch;
  pass_ = &passes_[std::size_t(batch)];
  rerun_layers_.clear();
  open_block(stage, stage_gate_[stage]);
}

void PlanLowerer::forward_block(std::uint32_t run, std::int32_t batch) {
  begin_block(run, batch);
  // Every run loads the data that it reads itself.
  for (std::uint32_t f = 0; run > 0 && f < facts_.uses.flows.size(); ++f) {
    const TensorFlow& flow = facts_.uses.flows[f];
    if (model_.tensors[flow.tensor].role == TensorRole::activation || resolved_.run_of(flow.producer) == run) continue;
    const std::int64_t bytes = bytes_beyond(f, run - 1);
    if (bytes == 0) continue;
    const std::uint32_t item = add(PlanTaskKind::forward, Lane::none, flow.producer, 0);
    wait(block_gate_);
    pass_->received[f] = {item, buffer(bytes, BufferKind::activation, item)};
  }
  for (const OperatorId op : operators_of_[run]) forward(op);
  stage_gate_[role_] = close_block();
  if (run + 1 < resolved_.runs()) send_on(run);
}

void PlanLowerer::backward_block(std::uint32_t run, std::int32_t batch) {
  begin_block(run, batch);
  const auto& operators = operators_of_[run];
  for (std::size_t i = operators.size(); i-- > 0;) {
    const int layer = resolved_.layer(operators[i]);
    if (plan_.pipeline->recompute && layer >= 0 && rerun_layers_.insert(layer).second) run_layer_again(layer);
    backward(operators[i]);
  }
  send_messages();
  stage_gate_[role_] = close_block();
  if (run > 0) send_back(run);
}

// A layer (or the core of an attention) that kept its inputs only runs forward again when everything issued before it
// has been computed; the first one of a block, when the gradients have come from the stage behind.
void PlanLowerer::run_layer_again(int layer) {
  rerun_gate_ = pass_->gradients_here;
  for (std::uint32_t i = last(); i + 1 > block_begin_ && i < out_.items.size(); --i)
    if (computes(i)) {
      rerun_gate_ = i;
      break;
    }
  for (const OperatorId op : operators_of_[run_])
    if (resolved_.layer(op) == layer) forward(op, true);
}

bool PlanLowerer::crosses(std::uint32_t f, std::uint32_t run) const {
  const TensorFlow& flow = facts_.uses.flows[f];
  if (model_.tensors[flow.tensor].role != TensorRole::activation || resolved_.run_of(flow.producer) > run) return false;
  return std::any_of(flow.consumers.begin(), flow.consumers.end(),
                     [&](const Model::Use& use) { return resolved_.run_of(use.op) > run; });
}

// In the layout in which it is read behind the boundary; 0: by nobody.
std::int64_t PlanLowerer::bytes_beyond(std::uint32_t f, std::uint32_t run) const {
  for (const auto& use : facts_.uses.flows[f].consumers)
    if (resolved_.run_of(use.op) > run) return resolved_.read_bytes[facts_.access(use.op, use.input)];
  return 0;
}

PlanLowerer::Lane PlanLowerer::links_between(std::uint32_t stage, std::uint32_t other) const {
  const auto pair = pair_of_stages(*scenario_.cluster, int(resolved_.stages()), int(stage), int(other));
  return pair.nodes > 1 ? Lane::between : Lane::inside;
}

void PlanLowerer::send_on(std::uint32_t run) {
  const std::uint32_t here = role_, next = stage_of(run + 1);
  const Lane lane = links_between(here, next);
  const std::uint32_t item = add(PlanTaskKind::send, lane, {}, plan_.pipeline->send_s[run]);
  out_.items.other.push_back(lane_of(next, lane));
  for (std::uint32_t f = 0; f < facts_.uses.flows.size(); ++f) {
    if (!crosses(f, run)) continue;
    need(resolved_.run_of(facts_.uses.flows[f].producer) == run ? pass_->shared[f] : pass_->received[f]);
    const std::int64_t bytes = bytes_beyond(f, run);
    out_.tasks[item].bytes += double(bytes);
    role_ = next;
    pass_->received[f] = {item, buffer(bytes, BufferKind::copy, item)};
    role_ = here;
  }
}

void PlanLowerer::send_back(std::uint32_t run) {
  const std::uint32_t here = role_, before = stage_of(run - 1);
  const Lane lane = links_between(here, before);
  const std::uint32_t item = add(PlanTaskKind::send_back, lane, {}, plan_.pipeline->send_back_s[run - 1]);
  out_.items.other.push_back(lane_of(before, lane));
  pass_->gradients_here = item;
  wait(stage_gate_[here]);
  for (std::uint32_t f = 0; f < facts_.uses.flows.size(); ++f) {
    if (pass_->gradient[f] == kNone || !crosses(f, run - 1)) continue;
    for (std::uint32_t c = pass_->gradient[f]; c != kNone; c = contributions_[c].before) need(contributions_[c].value);
    const std::int64_t bytes = bytes_beyond(f, run - 1);
    out_.tasks[item].bytes += double(bytes);
    role_ = before;
    pass_->gradient[f] = kNone;
    contribute(f, {item, buffer(bytes, BufferKind::copy, item)});
    role_ = here;
  }
}

// The next gather of a weight whose owner is on another stage, of which this one has a copy in shards.
void PlanLowerer::gather_copy(OperatorId id, std::uint32_t access, std::vector<Value>& values) {
  const std::uint32_t t = resolved_.tied_sum_of(id, access);
  if (t == kNone) return;
  const auto& gathers = resolved_.tied_sums()[t].gather;
  std::uint32_t& next = pass_->next_copy_gather[t];
  if (next == gathers.size()) return;
  const std::uint32_t item = add_step(PlanTaskKind::weights, id, gathers[next++]);
  wait(fetch_gate());
  fetched_ = true;
  values.push_back({item, buffer(resolved_.read_bytes[access], BufferKind::workspace, item)});
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
    const bool each = sums_every_micro_batch(plan_.operators[sums[t].owner_op.index].choice.update);
    if (!each && (batch_ + 1 < resolved_.micro_batches() || plan_.pipeline->sums_behind)) continue;
    sum_copy(t, kNone);
  }
}

// The sum over the user's stage of the gradient of its copy of another stage's weight.
void PlanLowerer::sum_copy(std::size_t t, std::uint32_t gate) {
  const PlanPipeline::TiedSum& sum = resolved_.tied_sums()[t];
  Value& gradient = tied_user_gradient_[t];
  for (const ReshardStep& step : sum.sync) {
    const std::uint32_t summed = add_step(PlanTaskKind::gradients, sum.user_op, step);
    need(gradient);
    wait(gate);
    gradient.item = summed;
  }
}

// Of a stage that has done its last backward: the sums of gradients that waited for it, and its updates behind all of
// them, as engines have it that take the norm of all gradients first. The pass is still that of the last micro-batch.
void PlanLowerer::sum_behind(std::uint32_t stage) {
  if (!plan_.pipeline->sums_behind) return;
  sums_gate_ = stage_gate_[stage];
  std::vector<Waiting> waiting;
  std::swap(waiting, summed_behind_[stage]);
  for (const Waiting& gradient : waiting) exchange_now(gradient);
  send_messages();
  std::vector<std::size_t> copies;
  for (std::size_t t = 0; t < resolved_.tied_sums().size(); ++t)
    if (std::uint32_t(resolved_.tied_sums()[t].user) == stage && tied_user_gradient_[t].valid()) copies.push_back(t);
  for (const std::size_t t : copies) sum_copy(t, sums_gate_);
  stage_gate_[stage] = add(PlanTaskKind::turn, Lane::none, {}, 0);
  wait(sums_gate_);
  for (const std::size_t t : copies) wait(tied_user_gradient_[t].item);
  for (const OperatorId op : updates_[stage])
    for (auto [g, end] = resolved_.groups_of(op); g < end; ++g) wait(held_gradient_[g].item);
  sums_gate_ = kNone;
}

void PlanLowerer::sum_between_stages(OperatorId id, std::vector<Value>& needed) {
  const auto& sums = resolved_.tied_sums();
  for (std::size_t t = 0; t < sums.size(); ++t) {
    if (sums[t].owner_op != id || !tied_user_gradient_[t].valid()) continue;
    const auto user = std::uint32_t(sums[t].user);
    const Lane lane = links_between(role_, user);
    const std::uint32_t item = add(PlanTaskKind::tied_sum, lane, id, sums[t].time_s);
    out_.items.other.push_back(lane_of(user, lane));
    for (const Value& value : needed) wait(value.item);
    need(tied_user_gradient_[t]);
    needed.push_back({item, kNone});
    update_copy(sums[t], {item, tied_user_gradient_[t].buffer});
  }
}

// On the user's stage, which has nothing else to do any more: the owner's is the first in every pass, and so the last
// to end.
void PlanLowerer::update_copy(const PlanPipeline::TiedSum& sum, const Value& gradient) {
  const std::uint32_t owner = role_;
  role_ = std::uint32_t(sum.user);
  const std::uint32_t updated =
      add(PlanTaskKind::update, sum.update_s > 0 ? Lane::compute : Lane::none, sum.user_op, sum.update_s);
  need(gradient);
  if (!plan_.operators[sum.owner_op.index].choice.gathers_first())
    for (const ReshardStep& step : sum.spread) {
      add_step(PlanTaskKind::new_weights, sum.user_op, step);
      wait(updated);
    }
  role_ = owner;
}

}  // namespace turnpoint
