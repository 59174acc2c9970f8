// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/plan_lowering.h"

#include <algorithm>

#include "core/schedule/plan_lowerer.h"

namespace turnpoint {

std::vector<std::int64_t> LoweredPlan::persistent() const {
  std::vector<std::int64_t> bytes;
  for (const Role& role : roles) bytes.push_back(role.persistent_bytes);
  return bytes;
}

struct PlanLowering::Facts {
  explicit Facts(const Model& model) : facts(model) {}
  PlanFacts facts;
};

PlanLowering::PlanLowering(const Scenario& scenario)
    : scenario_(scenario), facts_(std::make_unique<const Facts>(*scenario.model)) {}
PlanLowering::~PlanLowering() = default;

Expected<LoweredPlan> PlanLowering::lower(const Plan& plan, UnreadCopies unread) const {
  // Configurations and steps of a pipeline are those of one micro-batch.
  if (plan.pipeline && plan.pipeline->micro_batch) {
    const PlanFacts facts(*plan.pipeline->micro_batch);
    return PlanLowerer(scenario_, facts, plan, unread).run();
  }
  return PlanLowerer(scenario_, facts_->facts, plan, unread).run();
}

PlanLowerer::Pass::Pass(const PlanFacts& facts, const ResolvedPlan& measure)
    : produced(facts.uses.flows.size()),
      shared(produced.size()),
      produced_again(produced.size()),
      shared_again(produced.size()),
      received(produced.size()),
      gradient(produced.size(), kNone),
      read(facts.accesses()),
      base(facts.accesses()),
      read_again(facts.accesses()),
      forward(facts.model.operators.size(), kNone),
      again(forward.size(), kNone),
      internal(forward.size(), kNone),
      internal_again(forward.size(), kNone),
      next_gather(measure.groups.size(), 0),
      next_copy_gather(measure.tied_sums().size(), 0),
      gathered(forward.size(), 0),
      weights(forward.size()),
      tied(facts.accesses()),
      tied_gradients(forward.size()) {}

PlanLowerer::PlanLowerer(const Scenario& scenario, const PlanFacts& facts, const Plan& plan, UnreadCopies unread)
    : facts_(facts),
      scenario_(scenario),
      model_(facts.model),
      plan_(plan),
      resolved_(scenario, facts, plan),
      unread_(unread) {
  for (int a = 0; a < plan.mesh.count(); ++a)
    if (plan.mesh.axes[std::size_t(a)].level == kInterNode) between_nodes_ |= 1u << a;
}

double overlap_slowdown(const Scenario& scenario) {
  return scenario.settings.accounting == Accounting::paper ? 1 : scenario.cluster->overlap_slowdown;
}

Expected<LoweredPlan> PlanLowerer::run() {
  if (auto done = resolved_.run(); !done) return done.error();
  out_.roles.resize(resolved_.stages());
  for (std::size_t r = 0; r < out_.roles.size(); ++r) {
    out_.roles[r].persistent_bytes = resolved_.persistent[r];
    out_.roles[r].devices = std::uint32_t(plan_.mesh.devices()) / resolved_.stages();
  }
  out_.items.lanes = kLanes * resolved_.stages();
  out_.items.overlap_slowdown = overlap_slowdown(scenario_);
  held_gradient_.resize(resolved_.groups.size());
  updates_.resize(resolved_.stages());
  summed_behind_.resize(resolved_.stages());
  if (plan_.pipeline) {
    run_pipeline();
  } else {
    Pass pass(facts_, resolved_);
    pass_ = &pass;
    open_block(0, kNone);
    for (std::size_t i = 0; i < model_.operators.size(); ++i) forward(OperatorId(i));
    open_block(0, close_block());
    for (std::size_t i = model_.operators.size(); i-- > 0;) backward(OperatorId(i));
    send_messages();
    update_block(0, close_block());
  }
  out_.items.finish();
  mark_counted();
  return std::move(out_);
}

std::uint32_t PlanLowerer::add(PlanTaskKind kind, Lane lane, OperatorId op, double seconds) {
  // What nobody waits for but the update lets what computing waits for go first.
  const bool yields = kind == PlanTaskKind::gradients || kind == PlanTaskKind::new_weights;
  // A copy engine moves what goes to the host.
  const bool aside = kind == PlanTaskKind::from_host || kind == PlanTaskKind::to_host;
  out_.items.begin(lane == Lane::none ? kNone : lane_of(role_, lane), seconds, yields, aside);
  out_.tasks.push_back({kind, ReshardMove::slice, op, {}, role_, batch_, 0});
  return last();
}

std::uint32_t PlanLowerer::add_step(PlanTaskKind kind, OperatorId op, const ReshardStep& step) {
  const std::uint32_t item =
      add(kind, step.move == ReshardMove::slice ? Lane::none : links_of(step.axes), op, step.time_s);
  out_.tasks.back().move = step.move;
  out_.tasks.back().bytes = step.bytes;
  return item;
}

std::uint32_t PlanLowerer::buffer(std::int64_t bytes, BufferKind kind, std::uint32_t item) {
  out_.counted.push_back(0);
  return out_.buffers.add(bytes, kind, item, role_);
}

// The steps of a resharding one after the other; `gate` is what the first waits for besides its input.
PlanValue PlanLowerer::follow(PlanTaskKind kind, OperatorId op, TensorId tensor, const std::vector<ReshardStep>& steps,
                              Value value, std::uint32_t gate) {
  for (const ReshardStep& step : steps) {
    const std::uint32_t item = add_step(kind, op, step);
    out_.tasks.back().tensor = tensor;
    need(value);
    if (&step == &steps.front()) wait(gate);
    value = {item, buffer(resolved_.bytes_in(step.result, tensor), BufferKind::copy, item)};
  }
  return value;
}

void PlanLowerer::open_block(std::uint32_t role, std::uint32_t gate) {
  role_ = role;
  block_gate_ = gate;
  block_begin_ = std::uint32_t(out_.items.size());
  last_fetcher_ = before_last_fetcher_ = kNone;
  fetched_ = false;
}

// The instant in which all computing of the block has ended.
std::uint32_t PlanLowerer::close_block() {
  const std::uint32_t end = std::uint32_t(out_.items.size());
  const std::uint32_t item = add(PlanTaskKind::turn, Lane::none, {}, 0);
  for (std::uint32_t i = block_begin_; i < end; ++i)
    if (computes(i)) wait(i);
  wait(block_gate_);
  return item;
}

void PlanLowerer::fetched_for(std::uint32_t item) {
  if (!fetched_) return;
  fetched_ = false;
  before_last_fetcher_ = last_fetcher_;
  last_fetcher_ = item;
}

// The next gathers of an operator's sharded weights: of one group, or of all.
void PlanLowerer::gather(OperatorId owner, std::uint32_t only, std::vector<Value>& values) {
  const auto [begin, end] = resolved_.groups_of(owner);
  for (std::uint32_t g = begin; g < end; ++g) {
    const auto& group = resolved_.groups[g];
    const auto& gathers = group.steps->gather;
    if ((only != kNone && only != g) || pass_->next_gather[g] == gathers.size()) continue;
    const std::uint32_t n = pass_->next_gather[g]++;
    const std::uint32_t item = add_step(PlanTaskKind::weights, owner, gathers[n]);
    wait(fetch_gate());
    fetched_ = true;
    values.push_back({item, buffer(resolved_.gathered_bytes(group, n), BufferKind::workspace, item)});
  }
}

// What the update before has left in shards, once an iteration. Its room is among what persists, so that it waits for
// nothing.
void PlanLowerer::gather_first(OperatorId id, std::vector<Value>& needed) {
  if (batch_ > 0) return;
  const auto come = [&](OperatorId owner, const std::vector<ReshardStep>& steps) {
    if (!plan_.operators[owner.index].choice.gathers_first()) return;
    for (const ReshardStep& step : steps) needed.push_back({add_step(PlanTaskKind::weights, id, step), kNone});
  };
  const auto [begin, end] = resolved_.groups_of(id);
  for (std::uint32_t g = begin; g < end; ++g) come(id, resolved_.groups[g].steps->spread);
  for (const PlanPipeline::TiedSum& sum : resolved_.tied_sums())  // the stage's copy of another's weight
    if (sum.user_op == id) come(sum.owner_op, sum.spread);
}

// `rerun`: a layer of a pipeline that kept its inputs only runs forward once more.
void PlanLowerer::forward(OperatorId id, bool rerun) {
  const Operator& op = model_.operators[id];
  std::vector<Value> needed;
  if (!rerun) gather(id, kNone, needed), gather_first(id, needed);
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
    const std::uint32_t a = facts_.access(id, k);
    if (const std::uint32_t t = facts_.tie_of[a]; t != kNone) {
      if (!rerun && resolved_.role_of(facts_.uses.ties[t].owner) != role_)
        gather_copy(id, a, needed);  // the stage has a copy of its own
      else if (!rerun)
        read_tied(id, a, t);
    } else if (facts_.flow_of[a] != kNone) {
      read_input(id, a, rerun ? PlanTaskKind::again : PlanTaskKind::reshard);
    }
    if (pass_->read[a].valid()) needed.push_back(pass_->read[a]);
  }
  CostBreakdown cost = plan_.operators[id.index].cost;
  const std::uint32_t item = add(rerun ? PlanTaskKind::again : PlanTaskKind::forward,
                                 resolved_.works(id) ? Lane::compute : Lane::none, id, cost[ComputePart::forward]);
  for (const Value& value : needed) need(value);
  wait(block_gate_);
  if (rerun) wait(rerun_gate_);
  pass_->forward[id.index] = item;
  fetched_for(item);
  if (resolved_.internal_bytes[id.index] > 0)
    pass_->internal[id.index] = buffer(resolved_.internal_bytes[id.index], BufferKind::activation, item);
  if (resolved_.result_bytes[id.index] > 0 && !op.is_view())
    buffer(resolved_.result_bytes[id.index], BufferKind::activation, item);
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f)
    produce(id, f, item, rerun);
}

void PlanLowerer::produce(OperatorId id, std::uint32_t f, std::uint32_t item, bool rerun) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const PlanTaskKind kind = rerun ? PlanTaskKind::reshard_again : PlanTaskKind::reshard;
  std::uint32_t bytes = kNone;
  for (std::uint32_t k = 0; flow.producer_is_view && bytes == kNone && k < model_.operators[id].inputs.size(); ++k)
    bytes = pass_->read[facts_.access(id, k)].buffer;
  if (bytes == kNone) bytes = buffer(resolved_.produced_bytes[f], BufferKind::activation, item);
  pass_->produced[f] = pass_->shared[f] = {item, bytes};
  if (const std::uint32_t s = resolved_.shared_reshard[f]; s != kNone) {
    const auto& steps = plan_.reshards[s].forward;
    pass_->shared[f] = follow(kind, id, flow.tensor, steps, pass_->produced[f], kNone);
  }
  // A tensor of one reader goes on at once; where several each bring it into shape, that is fetched for each.
  if (resolved_.stored(f)) return;
  for (const auto& use : flow.consumers) {
    const std::uint32_t a = facts_.access(use.op, use.input), r = resolved_.reshard_of[a];
    if (rerun && resolved_.layer(id) != resolved_.layer(use.op)) continue;
    pass_->base[a] = pass_->read[a] = pass_->produced[f];
    if (r == kNone || resolved_.run_of(use.op) != resolved_.run_of(id)) continue;
    const auto& steps = plan_.reshards[r].forward;
    pass_->read[a] = follow(kind, use.op, flow.tensor, steps, pass_->produced[f], kNone);
  }
}

void PlanLowerer::read_input(OperatorId id, std::uint32_t a, PlanTaskKind kind) {
  const std::uint32_t f = facts_.flow_of[a], r = resolved_.reshard_of[a];
  const TensorFlow& flow = facts_.uses.flows[f];
  const bool here = resolved_.run_of(flow.producer) == resolved_.run_of(id), rerun = kind == PlanTaskKind::again;
  if (here && !resolved_.stored(f)) return;  // followed where it was produced
  // A layer that runs again finds its inputs as they were read.
  if (rerun && (!here || resolved_.layer(flow.producer) != resolved_.layer(id))) return;
  pass_->base[a] = pass_->read[a] = here ? pass_->shared[f] : pass_->received[f];
  if (r == kNone) return;
  const auto& steps = plan_.reshards[r].forward;
  const std::size_t items = out_.items.size();
  pass_->read[a] =
      follow(rerun ? PlanTaskKind::reshard_again : kind, id, flow.tensor, steps, pass_->base[a], fetch_gate());
  fetched_ = fetched_ || out_.items.size() > items;
}

void PlanLowerer::read_tied(OperatorId id, std::uint32_t a, std::uint32_t t) {
  const ParameterTie& tie = facts_.uses.ties[t];
  std::vector<Value> gathered;
  gather(tie.owner, resolved_.group_of_tie[t], gathered);
  pass_->base[a] = pass_->read[a] = gathered.empty() ? Value{} : gathered.front();
  const std::uint32_t r = resolved_.reshard_of[a];
  if (r == kNone) return;
  const auto& steps = plan_.reshards[r].forward;
  const std::size_t items = out_.items.size();
  pass_->read[a] = follow(PlanTaskKind::reshard, id, plan_.reshards[r].tensor, steps, pass_->base[a], fetch_gate());
  fetched_ = fetched_ || out_.items.size() > items;
}

// What the additive accounting counts among what is alive: tensors made on the way forward that backward reads.
// Gradients of parameters were marked where they were made.
void PlanLowerer::mark_counted() {
  const auto on_the_way_forward = [](PlanTaskKind kind) {
    return kind == PlanTaskKind::forward || kind == PlanTaskKind::reshard || kind == PlanTaskKind::send;
  };
  const Buffers& buffers = out_.buffers;
  for (std::size_t k = 0; k < buffers.read_buffer.size(); ++k) {
    const std::uint32_t b = buffers.read_buffer[k];
    if (buffers.kind[b] == BufferKind::workspace) continue;
    if (on_the_way_forward(out_.tasks[buffers.made_by[b]].kind) &&
        !on_the_way_forward(out_.tasks[buffers.read_item[k]].kind))
      out_.counted[b] = 1;
  }
  for (const auto& [buffer, until] : unread_until_) {
    if (buffer == kNone || out_.counted[buffer]) continue;
    out_.counted[buffer] = 1;
    read(buffer, until);
  }
}

}  // namespace turnpoint
