// SPDX-License-Identifier: Apache-2.0
#include "core/plan/resolved_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "core/plan/tied_copy.h"

namespace turnpoint {

PlanFacts::PlanFacts(const Model& of) : model(of), uses(analyse_tensor_uses(of)) {
  const std::size_t operators = model.operators.size();
  first_flow.assign(operators + 1, 0);
  for (const TensorFlow& flow : uses.flows) ++first_flow[flow.producer.index + 1];
  for (std::size_t i = 0; i < operators; ++i) first_flow[i + 1] += first_flow[i];
  first_access.assign(operators + 1, 0);
  for (std::size_t i = 0; i < operators; ++i)
    first_access[i + 1] = first_access[i] + std::uint32_t(model.operators[OperatorId(i)].inputs.size());
  flow_of.assign(first_access.back(), kNone);
  tie_of.assign(first_access.back(), kNone);
  for (std::size_t f = 0; f < uses.flows.size(); ++f)
    for (const auto& use : uses.flows[f].consumers) flow_of[access(use.op, use.input)] = std::uint32_t(f);
  for (std::size_t t = 0; t < uses.ties.size(); ++t)
    tie_of[access(uses.ties[t].user, uses.ties[t].user_input)] = std::uint32_t(t);
  for (const Operator& op : model.operators) {
    bool any = false;
    for (const Access& in : op.inputs) any = any || model.tensors[in.tensor].requires_gradient;
    has_gradient.push_back(any && op.kind != OperatorKind::input);
  }
}

ResolvedPlan::ResolvedPlan(const Scenario& scenario, const PlanFacts& facts, const Plan& plan)
    : facts_(facts),
      model_(facts.model),
      plan_(plan),
      settings_(scenario.settings),
      bytes_(parameter_bytes(scenario.settings, scenario.settings.accounting)),
      real_(parameter_bytes(scenario.settings, Accounting::full)) {}

Error ResolvedPlan::bad(OperatorId op, const char* what) const {
  return bad_input(fmt::format("plan: {}", what), fmt::format("{}: {}", model_.name, model_.operators[op].name));
}

Expected<void> ResolvedPlan::run() {
  if (auto done = check(); !done) return done;
  if (plan_.pipeline) {
    stages_ = std::uint32_t(plan_.pipeline->stages);
    chunks_ = std::uint32_t(plan_.pipeline->chunks);
    micro_batches_ = plan_.pipeline->micro_batches;
    layers_ = !plan_.pipeline->layer_of.empty();
  }
  persistent.assign(stages_, 0);
  for (const PlanOperator& op : plan_.operators) {
    CostBreakdown cost = op.cost;
    persistent[role_of(op.op)] += cost[MemoryPart::parameters] + cost[MemoryPart::optimizer];
  }
  for (const auto& sum : tied_sums()) persistent[std::size_t(sum.user)] += sum.parameter_bytes + sum.optimizer_bytes;
  if (auto done = match_reshards(); !done) return done;
  if (auto done = match_restored(); !done) return done;
  measure_tensors();
  if (stages_ > 1) {
    reads_ = facts_.uses.parameter_reads;
    leave_reads_to_copies(model_, plan_, facts_.uses.ties, reads_);
  }
  group_of_tie.assign(facts_.uses.ties.size(), kNone);
  first_group_.push_back(0);
  for (std::size_t i = 0; i < model_.operators.size(); ++i) {
    if (auto done = group_parameters(OperatorId(i)); !done) return done;
    first_group_.push_back(std::uint32_t(groups.size()));
  }
  return {};
}

Expected<void> ResolvedPlan::check() const {
  if (plan_.operators.size() != model_.operators.size())
    return bad_input(
        fmt::format("plan has {} operators, the model {}", plan_.operators.size(), model_.operators.size()),
        model_.name);
  const int stages = plan_.pipeline ? plan_.pipeline->stages : 1, chunks = plan_.pipeline ? plan_.pipeline->chunks : 1;
  for (std::size_t i = 0; i < plan_.operators.size(); ++i) {
    const PlanOperator& op = plan_.operators[i];
    if (op.op != OperatorId(i)) return bad(OperatorId(i), "operators are not in the model's order");
    for (int a = 0; a < kMaxAxes; ++a)
      if (op.split.axis[std::size_t(a)] >= int(model_.operators[op.op].dims.size()))
        return bad(op.op, "splits a dimension it does not have");
    if (op.stage < 0 || op.stage >= std::max(1, stages) || op.chunk < 0 || op.chunk >= std::max(1, chunks))
      return bad(op.op, "is on a stage that is not there");
  }
  for (const PlanReshard& reshard : plan_.reshards)
    if (reshard.tensor.index >= model_.tensors.size() || reshard.producer.index >= model_.operators.size() ||
        (reshard.consumer.valid() && reshard.consumer.index >= model_.operators.size()))
      return bad_input("plan has a resharding of a tensor or an operator that is not there", model_.name);
  if (!plan_.pipeline) return {};
  const PlanPipeline& p = *plan_.pipeline;
  const bool goes_round = p.chunks == 1 || (p.stages > 1 && p.micro_batches % p.stages == 0);
  const bool whole = p.stages >= 1 && p.chunks >= 1 && p.micro_batches >= 1 && goes_round &&
                     plan_.mesh.devices() % p.stages == 0 && p.send_s.size() + 1 == std::size_t(p.runs()) &&
                     p.send_back_s.size() == p.send_s.size() &&
                     (p.layer_of.empty() || p.layer_of.size() == plan_.operators.size());
  const bool ties = std::all_of(p.tied.begin(), p.tied.end(), [&](const PlanPipeline::TiedSum& sum) {
    return sum.owner >= 0 && sum.user >= 0 && sum.owner < p.stages && sum.user < p.stages;
  });
  if (!whole || !ties) return bad_input("plan is a pipeline with parts missing", model_.name);
  return {};
}

const std::vector<PlanPipeline::TiedSum>& ResolvedPlan::tied_sums() const {
  static const std::vector<PlanPipeline::TiedSum> kNoSums;
  return plan_.pipeline ? plan_.pipeline->tied : kNoSums;
}

std::uint32_t ResolvedPlan::tied_sum_of(OperatorId op, std::uint32_t access) const {
  const auto& sums = tied_sums();
  const OperatorId owner = facts_.uses.ties[facts_.tie_of[access]].owner;
  for (std::size_t t = 0; t < sums.size(); ++t)
    if (sums[t].user_op == op && sums[t].owner_op == owner) return std::uint32_t(t);
  return kNone;
}

std::int64_t ResolvedPlan::bytes_in(const Layout& layout, TensorId tensor) const {
  return local_bytes(plan_.mesh, layout, model_.tensors[tensor], settings_.precision);
}

bool ResolvedPlan::works(OperatorId op) const {
  const Operator& what = model_.operators[op];
  return !what.is_view() && what.kind != OperatorKind::input;
}

bool ResolvedPlan::runs_again(std::uint32_t flow) const {
  const OperatorId producer = facts_.uses.flows[flow].producer;
  return plan_.operators[producer.index].choice.recompute && facts_.uses.run_again[producer.index] != RunAgain::never;
}

bool ResolvedPlan::internals_again(OperatorId op) const {
  return plan_.operators[op.index].choice.recompute && internal_bytes[op.index] > 0 &&
         internals_can_be_recomputed(model_, model_.operators[op]);
}

bool ResolvedPlan::from_source(std::uint32_t reshard) const {
  const PlanReshard& r = plan_.reshards[reshard];
  return r.forward.empty() || r.keep == Keep::before || r.keep == Keep::again;
}

std::int64_t ResolvedPlan::visiting_bytes(OperatorId op) const {
  const auto [begin, end] = groups_of(op);
  std::int64_t bytes = 0;
  for (std::uint32_t g = begin; g < end; ++g) bytes += groups[g].shard_elements * real_.optimizer;
  return bytes;
}

// Reshardings in the order of the plan; those of one consumer and tensor are told apart by the layout it reads.
Expected<void> ResolvedPlan::match_reshards() {
  const std::size_t operators = model_.operators.size();
  std::vector<std::uint32_t> row(operators + 1, 0), by_consumer(plan_.reshards.size());
  shared_reshard.assign(facts_.uses.flows.size(), kNone);
  reshard_of.assign(facts_.accesses(), kNone);
  read_bytes.assign(facts_.accesses(), 0);
  std::size_t used = 0;
  for (std::size_t r = 0; r < plan_.reshards.size(); ++r) {
    const PlanReshard& reshard = plan_.reshards[r];
    const bool repeats = reshard.keep == Keep::before || reshard.keep == Keep::again;
    if (reshard.repeated.size() != (repeats ? reshard.forward.size() : 0))
      return bad(reshard.producer, "backward does not repeat a resharding");
    if (reshard.consumer.valid()) {
      ++row[reshard.consumer.index + 1];
      continue;
    }
    for (std::uint32_t f = facts_.first_flow[reshard.producer.index]; f < facts_.first_flow[reshard.producer.index + 1];
         ++f)
      if (facts_.uses.flows[f].tensor == reshard.tensor && shared_reshard[f] == kNone)
        shared_reshard[f] = std::uint32_t(r), ++used;
  }
  for (std::size_t i = 0; i < operators; ++i) row[i + 1] += row[i];
  std::vector<std::uint32_t> at(row.begin(), row.end() - 1);
  for (std::size_t r = 0; r < plan_.reshards.size(); ++r)
    if (plan_.reshards[r].consumer.valid()) by_consumer[at[plan_.reshards[r].consumer.index]++] = std::uint32_t(r);

  std::vector<char> taken(plan_.reshards.size(), 0);
  const int axes = plan_.mesh.count();
  for (std::size_t i = 0; i < operators; ++i) {
    const Operator& op = model_.operators[OperatorId(i)];
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k) {
      const std::uint32_t a = facts_.access(OperatorId(i), k), t = facts_.tie_of[a];
      if (facts_.flow_of[a] == kNone && t == kNone) continue;
      Layout to = gradient_layout(op, op.inputs[k], false, plan_.operators[i].split, axes);
      read_bytes[a] = bytes_in(to, op.inputs[k].tensor);
      TensorId tensor = op.inputs[k].tensor;
      if (t != kNone) {
        const ParameterTie& tie = facts_.uses.ties[t];
        tensor = model_.operators[tie.owner].inputs[tie.owner_input].tensor;
        if (model_.tensors[tensor].shape != model_.tensors[op.inputs[k].tensor].shape)
          for (auto& value : to.axis)
            if (value >= 0) value = static_cast<std::int8_t>(1 - value);
      }
      for (std::uint32_t n = row[i]; n < row[i + 1] && reshard_of[a] == kNone; ++n) {
        const std::uint32_t r = by_consumer[n];
        if (taken[r] || plan_.reshards[r].tensor != tensor || plan_.reshards[r].to != to) continue;
        taken[r] = 1;
        reshard_of[a] = r;
        ++used;
      }
    }
  }
  if (used != plan_.reshards.size()) return bad_input("plan has a resharding that no consumer asked for", model_.name);
  return {};
}

// Where the producer's backward reads its output and the copy after alone is kept, the producer's is made again from
// it.
Expected<void> ResolvedPlan::match_restored() {
  std::vector<char> restores(plan_.reshards.size(), 0);
  restored_by.assign(facts_.uses.flows.size(), kNone);
  for (std::uint32_t f = 0; f < facts_.uses.flows.size(); ++f) {
    const TensorFlow& flow = facts_.uses.flows[f];
    if (!flow.producer_copy_is_here() || !model_.tensors[flow.tensor].requires_gradient || runs_again(f)) continue;
    const auto& use = flow.consumers.front();
    const std::uint32_t r = stored(f) ? shared_reshard[f] : reshard_of[facts_.access(use.op, use.input)];
    if (r == kNone || plan_.reshards[r].keep != Keep::after || plan_.reshards[r].forward.empty()) continue;
    if (plan_.reshards[r].restored.empty())
      return bad(flow.producer, "its copy of its output is neither kept nor made again");
    if (plan_.pipeline && plan_.pipeline->stages > 1)
      return bad(flow.producer, "a pipeline of stages does not make its copy of its output again");
    restored_by[f] = r;
    restores[r] = 1;
  }
  for (std::size_t r = 0; r < plan_.reshards.size(); ++r)
    if (!restores[r] && !plan_.reshards[r].restored.empty())
      return bad(plan_.reshards[r].producer, "brings back a copy that nobody reads");
  return {};
}

void ResolvedPlan::measure_tensors() {
  const int axes = plan_.mesh.count();
  internal_bytes.assign(model_.operators.size(), 0);
  for (const TensorFlow& flow : facts_.uses.flows) {
    const Operator& op = model_.operators[flow.producer];
    const Layout layout =
        forward_layout(op, op.outputs[flow.output], true, plan_.operators[flow.producer.index].split, axes);
    produced_bytes.push_back(bytes_in(layout, flow.tensor));
  }
  for (std::size_t i = 0; i < model_.operators.size(); ++i)
    for (const Access& access : model_.operators[OperatorId(i)].outputs) {
      if (model_.tensors[access.tensor].role != TensorRole::internal || !access.saved) continue;
      const Layout layout =
          forward_layout(model_.operators[OperatorId(i)], access, true, plan_.operators[i].split, axes);
      internal_bytes[i] += bytes_in(layout, access.tensor);
    }
  for (const PlanOperator& op : plan_.operators)
    internal_bytes[op.op.index] += held_inside_bytes(settings_, model_, model_.operators[op.op], op.split, plan_.mesh);
  result_bytes.assign(model_.operators.size(), 0);
  for (const TensorId result : model_.results) {
    const Tensor& tensor = model_.tensors[result];
    if (!tensor.producer.valid() || !is_floating(tensor.type) || !model_.uses[result].empty()) continue;
    const Operator& op = model_.operators[tensor.producer];
    const auto access =
        std::find_if(op.outputs.begin(), op.outputs.end(), [&](const Access& a) { return a.tensor == result; });
    const Configuration& split = plan_.operators[tensor.producer.index].split;
    if (access != op.outputs.end())
      result_bytes[tensor.producer.index] += bytes_in(forward_layout(op, *access, true, split, axes), result);
  }
}

Expected<void> ResolvedPlan::group_parameters(OperatorId id) {
  const Operator& op = model_.operators[id];
  const PlanOperator& planned = plan_.operators[id.index];
  const auto expected = parameter_groups(model_, facts_.uses, id, planned.split, plan_.mesh.count());
  const auto& own_reads = stages_ > 1 ? reads_[id.index] : facts_.uses.parameter_reads[id.index];
  const std::size_t begin = groups.size();
  if (planned.parameters.size() != expected.size())
    return bad(id, expected.empty() ? "synchronises gradients that it does not have"
                                    : "parameters are not in the groups in which they lie on the mesh");
  for (std::size_t g = 0; g < expected.size(); ++g) {
    if (planned.parameters[g].group != expected[g])
      return bad(id, "parameters are not in the groups in which they lie on the mesh");
    Group& group = groups.emplace_back();
    group.steps = &planned.parameters[g];
    group.shards = plan_.mesh.size_of(expected[g].shards(planned.choice));
    GroupElements all;
    for (const std::uint32_t k : expected[g].inputs) {
      const Layout gradient = gradient_layout(op, op.inputs[k], false, planned.split, plan_.mesh.count());
      const auto local = local_parameter(model_, facts_.uses, id, k, plan_.mesh, gradient, settings_.optimizer);
      const std::int64_t elements = local.elements;
      all.add(local);
      const auto reads =
          std::size_t(own_reads[k] + (planned.choice.recompute ? facts_.uses.rerun_reads[id.index][k] : 0));
      if (group.read_elements.size() < reads) group.read_elements.resize(reads, 0);
      for (std::size_t n = 0; n < reads; ++n) group.read_elements[n] += elements;
    }
    group.shard_elements = all.shard(planned.choice, group.shards);
    group.full_gradient_bytes = all.all() * bytes_.gradient;
    group.shard_gradient_bytes = group.shard_elements * bytes_.gradient;
    if (auto done = check_steps(id, group); !done) return done;
  }
  for (std::size_t t = 0; t < facts_.uses.ties.size(); ++t) {
    const ParameterTie& tie = facts_.uses.ties[t];
    if (tie.owner != id) continue;
    for (std::size_t g = 0; g < expected.size(); ++g)
      if (std::ranges::count(expected[g].inputs, tie.owner_input)) group_of_tie[t] = std::uint32_t(begin + g);
  }
  return {};
}

Expected<void> ResolvedPlan::check_steps(OperatorId id, const Group& group) const {
  const MemoryChoice& choice = plan_.operators[id.index].choice;
  const ParameterSteps& steps = *group.steps;
  const std::uint32_t shards = steps.group.shards(choice);
  const bool kept_sharded = choice.update == Update::sharded_weights;
  std::uint32_t pending = steps.group.partial | shards;
  for (const ReshardStep& step : steps.sync) {
    if (!pending) return bad(id, "synchronises gradients that are whole already");
    if ((step.axes & pending) == 0 || step.move == ReshardMove::all_gather)
      return bad(id, "gradients are not summed over all their axes once");
    pending &= ~step.axes;
  }
  if (pending) return bad(id, "gradients are not summed over all their axes once");
  if (steps.gather.size() != (shards && kept_sharded ? group.read_elements.size() : 0) ||
      steps.spread.size() != (shards && !kept_sharded ? 1 : 0))
    return bad(id, "sharded weights are not gathered for whoever reads them");
  return {};
}

}  // namespace turnpoint
