// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/ratio_lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/schedule/ratio_lowerer.h"

namespace turnpoint {
namespace {

ReshardMove move_of(NetworkPart part) {
  switch (part) {
    case NetworkPart::all_reduce: return ReshardMove::all_reduce;
    case NetworkPart::reduce_scatter: return ReshardMove::reduce_scatter;
    case NetworkPart::all_to_all: return ReshardMove::all_to_all;
    default: return ReshardMove::all_gather;
  }
}

bool works_at_all(const Operator& op) { return !op.is_view() && op.kind != OperatorKind::input; }

}  // namespace

Expected<LoweredPlan> lower_ratio_plan(const Scenario& scenario, const RatioPlan& plan, std::size_t most) {
  const RatioCharges charges(scenario, plan);
  const auto roles = roles_of(plan, *scenario.model, charges);
  if (!roles) return roles.error();
  const std::size_t operators = scenario.model->operators.size();
  if (roles->roles.size() * operators > most)
    return usage_error(fmt::format(
        "the plan has no schedule: its {} unlike parts of {} operators are more than the {} that are laid out",
        roles->roles.size(), operators, most));
  return RatioLowerer(scenario, charges, *roles).run();
}

RatioLowerer::RatioLowerer(const Scenario& scenario, const RatioCharges& charges, const RatioRoles& roles)
    : scenario_(scenario),
      charges_(charges),
      roles_(roles),
      facts_(*scenario.model),
      by_flow_(facts_.uses.flows.size()),
      by_tie_(facts_.uses.ties.size()),
      weights_of_(model().operators.size()),
      new_weights_of_(model().operators.size()),
      left_back_(by_flow_.size()),
      messages_(roles.sites.size()) {
  using What = RatioExchange::What;
  for (std::uint32_t s = 0; s < roles.sites.size(); ++s)
    for (const RatioExchange& exchange : roles.sites[s].exchanges) {
      if (exchange.what == What::update_sums) continue;
      const bool of_flow = exchange.what == What::tensor || exchange.what == What::gradient;
      auto& list = exchange.what == What::weight_gradient ? weights_of_[exchange.op.index]
                   : exchange.what == What::new_weights   ? new_weights_of_[exchange.op.index]
                   : exchange.what == What::gradient      ? left_back_[exchange.subject]
                   : of_flow                              ? by_flow_[exchange.subject]
                                                          : by_tie_[exchange.subject];
      list.push_back({s, &exchange});
    }
  for (const TensorFlow& flow : facts_.uses.flows) done_.emplace_back(flow.consumers.size(), 0);
  const std::size_t operators = model().operators.size(), accesses = facts_.accesses();
  for (const RatioRoles::Role& role : roles.roles) {
    Held held;
    LoweredPlan::Role out;
    for (std::size_t o = 0; o < operators; ++o) {
      held.cost.push_back(charges.device_cost(OperatorId(o), role.devices.front(), role.lengths[o]));
      CostBreakdown& cost = held.cost.back();
      out.persistent_bytes += cost[MemoryPart::parameters] + cost[MemoryPart::optimizer];
    }
    out.devices = std::uint32_t(role.devices.size());
    out.members = role.devices;
    out_.roles.push_back(std::move(out));
    held.forward.assign(operators, kNone);
    held.internal.assign(operators, kNone);
    held.again.assign(operators, kNone);
    held.internal_again.assign(operators, kNone);
    held.produced.resize(by_flow_.size());
    held.read.resize(accesses);
    held.began.assign(accesses, kNone);
    held.gradient.resize(accesses);
    held.weight.resize(operators);
    held.weight_sum.resize(operators);
    held.tied.resize(by_tie_.size());
    held_.push_back(std::move(held));
  }
  // An update that sums over its shards waits in its midst.
  for (const RatioRoles::Site& site : roles.sites)
    for (const RatioExchange& exchange : site.exchanges)
      for (std::size_t r = 0; exchange.what == What::update_sums && r < site.roles.size(); ++r)
        held_[site.roles[r]].cost[exchange.op.index][ComputePart::update] += exchange.seconds;
  out_.items.lanes = kLanes * std::uint32_t(roles.roles.size());
  out_.items.overlap_slowdown = overlap_slowdown(scenario);
}

LoweredPlan RatioLowerer::run() {
  const std::size_t operators = model().operators.size();
  for (std::size_t o = 0; o < operators; ++o) forward(OperatorId(o));
  end_block();
  for (std::size_t o = operators; o-- > 0;) backward(OperatorId(o));
  for (std::uint32_t s = 0; s < messages_.size(); ++s) send(s);
  end_block();
  for (const OperatorId id : updates_) {
    for (Role r = 0; r < held_.size(); ++r) update(r, id);
    gather(id);
  }
  out_.items.finish();
  return std::move(out_);
}

std::uint32_t RatioLowerer::add(PlanTaskKind kind, Role role, OperatorId op, double seconds) {
  const bool computes = kind != PlanTaskKind::turn && works_at_all(model().operators[op]);
  const std::uint32_t item = out_.items.begin(computes ? kLanes * role : kNone, seconds);
  out_.tasks.push_back({kind, ReshardMove::slice, op, {}, role, 0, 0});
  if (computes) held_[role].computing.push_back(item);
  return item;
}

std::uint32_t RatioLowerer::add_exchange(PlanTaskKind kind, const Here& here, double seconds, double bytes) {
  const RatioRoles::Site& site = roles_.sites[here.site];
  const std::uint32_t links = site.inside_node ? 1 : 2;
  const std::uint32_t item =
      out_.items.begin(kLanes * site.roles.front() + links, seconds, kind == PlanTaskKind::gradients);
  for (std::size_t k = 1; k < site.roles.size(); ++k) out_.items.other.push_back(kLanes * site.roles[k] + links);
  out_.tasks.push_back({kind, move_of(here.exchange->part), here.exchange->op, {}, site.roles.front(), 0, bytes});
  return item;
}

// Many roles may wait for one exchange: it is named once.
void RatioLowerer::wait(std::uint32_t item) {
  auto& waits = out_.items.wait_for;
  if (item == kNone) return;
  if (std::find(waits.begin() + out_.items.wait_begin.back(), waits.end(), item) == waits.end()) waits.push_back(item);
}

void RatioLowerer::read(std::uint32_t buffer) {
  if (buffer != kNone) out_.buffers.read(buffer, last());
}

void RatioLowerer::need(const Value& value) {
  wait(value.item);
  read(value.buffer);
}

std::uint32_t RatioLowerer::buffer(std::int64_t bytes, BufferKind kind, std::uint32_t item, Role role) {
  out_.counted.push_back(0);
  return out_.buffers.add(bytes, kind, item, role);
}

void RatioLowerer::end_block() {
  for (Role r = 0; r < held_.size(); ++r) {
    const std::uint32_t item = out_.items.begin(kNone, 0);
    out_.tasks.push_back({PlanTaskKind::turn, ReshardMove::slice, {}, {}, r, 0, 0});
    auto& waits = out_.items.wait_for;
    waits.insert(waits.end(), held_[r].computing.begin(), held_[r].computing.end());
    wait(held_[r].gate);
    held_[r].computing.clear();
    held_[r].gate = item;
  }
}

void RatioLowerer::forward(OperatorId id) {
  const Operator& op = model().operators[id];
  for (std::uint32_t k = 0; k < op.inputs.size(); ++k)
    if (const std::uint32_t a = facts_.access(id, k); facts_.tie_of[a] != kNone) bring_weights(id, a);
  for (Role r = 0; r < held_.size(); ++r) {
    Held& held = held_[r];
    const std::uint32_t item = add(PlanTaskKind::forward, r, id, held.cost[id.index][ComputePart::forward]);
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) need(held.read[facts_.access(id, k)]);
    held.forward[id.index] = item;
    std::int64_t internal = charges_.excess(op, lengths(r, id));
    for (const Access& access : op.outputs)
      if (model().tensors[access.tensor].role == TensorRole::internal && access.saved)
        internal += charges_.bytes_of(op, access, lengths(r, id));
    if (internal > 0) held.internal[id.index] = buffer(internal, BufferKind::activation, item, r);
    if (const std::int64_t result = result_bytes(r, id); result > 0 && !op.is_view())
      buffer(result, BufferKind::activation, item, r);
  }
  for (std::uint32_t f = facts_.first_flow[id.index]; f < facts_.first_flow[id.index + 1]; ++f) produce(id, f);
}

// Results of the network that no operator reads.
std::int64_t RatioLowerer::result_bytes(Role r, OperatorId id) const {
  const Operator& op = model().operators[id];
  std::int64_t bytes = 0;
  for (const TensorId result : model().results)
    for (const Access& access : op.outputs)
      if (access.tensor == result && is_floating(model().tensors[result].type) && model().uses[result].empty())
        bytes += charges_.bytes_of(op, access, lengths(r, id));
  return bytes;
}

// Another operator's weight, for one that reads it, too: kept to the reader's backward.
void RatioLowerer::bring_weights(OperatorId id, std::uint32_t a) {
  const ParameterTie& tie = facts_.uses.ties[facts_.tie_of[a]];
  for (const Here& here : by_tie_[facts_.tie_of[a]]) {
    if (here.exchange->what != RatioExchange::What::weight) continue;
    const std::uint32_t item = add_exchange(PlanTaskKind::weights, here, here.exchange->seconds, here.exchange->bytes);
    const auto& members = roles_.sites[here.site].roles;
    for (const Role r : members) need(held_[r].read[a]);
    for (const Role r : members) {
      const Operator& op = model().operators[id];
      const auto elements = std::int64_t(charges_.elements(op, op.inputs[tie.user_input], lengths(r, id)));
      held_[r].read[a] = {item, buffer(elements * charges_.real().weight, BufferKind::workspace, item, r)};
    }
  }
}

void RatioLowerer::produce(OperatorId id, std::uint32_t f) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const Operator& op = model().operators[id];
  for (Role r = 0; r < held_.size(); ++r) {
    Held& held = held_[r];
    const std::uint32_t item = held.forward[id.index];
    std::uint32_t bytes = kNone;
    for (std::uint32_t k = 0; flow.producer_is_view && bytes == kNone && k < op.inputs.size(); ++k)
      bytes = held.read[facts_.access(id, k)].buffer;
    if (bytes == kNone)
      bytes = buffer(charges_.bytes_of(op, op.outputs[flow.output], lengths(r, id)), BufferKind::activation, item, r);
    held.produced[f] = {item, bytes};
    if (runs_again(r, id)) held.maker[bytes] = id;
    for (const Model::Use& use : flow.consumers) held.read[facts_.access(use.op, use.input)] = held.produced[f];
  }
  bring(f);
}

void RatioLowerer::bring(std::uint32_t f) {
  const TensorFlow& flow = facts_.uses.flows[f];
  const auto access = [&](std::uint32_t use) {
    return facts_.access(flow.consumers[use].op, flow.consumers[use].input);
  };
  for (const Here& here : by_flow_[f]) {
    const std::uint32_t item = add_exchange(PlanTaskKind::reshard, here, here.exchange->seconds, here.exchange->bytes);
    out_.tasks.back().tensor = flow.tensor;
    const auto& members = roles_.sites[here.site].roles;
    for (const Role r : members) {
      read(held_[r].produced[f].buffer);
      for (const std::uint32_t use : here.exchange->uses) wait(held_[r].read[access(use)].item);
    }
    for (const Role r : members)
      for (const std::uint32_t use : here.exchange->uses) {
        held_[r].read[access(use)].item = item;
        if (std::uint32_t& began = held_[r].began[access(use)]; began == kNone) began = item;
      }
  }
  if (by_flow_[f].empty()) return;
  for (Role r = 0; r < held_.size(); ++r) {
    // Copies that came the same way and have the same shape are one.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::vector<std::int64_t>>, std::uint32_t> copies;
    for (std::uint32_t c = 0; c < flow.consumers.size(); ++c) {
      const std::uint32_t a = access(c), began = held_[r].began[a];
      if (began == kNone) continue;
      const OperatorId reader = flow.consumers[c].op;
      const Operator& op = model().operators[reader];
      const Access& wanted = op.inputs[flow.consumers[c].input];
      Value& value = held_[r].read[a];
      const auto [copy, is_new] = copies.try_emplace(
          std::tuple(began, value.item, charges_.local_shape(op, wanted, lengths(r, reader))), kNone);
      if (is_new) copy->second = buffer(charges_.bytes_of(op, wanted, lengths(r, reader)), BufferKind::copy, began, r);
      value.buffer = copy->second;
    }
  }
}

}  // namespace turnpoint
