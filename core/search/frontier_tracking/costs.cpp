// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/costs.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "core/cost/collectives.h"
#include "core/search/frontier_tracking/forced.h"
#include "core/search/frontier_tracking/questions.h"

namespace turnpoint::search {

namespace {

constexpr double kEqualTimes = 1e-12;  // of a time: ways as fast as that are equal, and the first is taken

std::int64_t bytes_of(const PairTable& table, const Mesh& mesh, const Layout& layout) {
  return local_elements(mesh, layout, table.shape) * table.element_bytes;
}

// `before` and `after`: bytes of the tensor in the two layouts.
PairAlternatives alternatives_of(const PairTable& table, const Layout& from, const Layout& to, const PairTimes& times,
                                 std::int64_t before, std::int64_t after) {
  const double plain = times.forward + times.backward;
  const Layout to_whole = to.without_partial();
  // Only a producer's output can be partial in its forward layout; such a copy is no copy of the tensor.
  const bool partial_source = pair_starts_at_output(table.kind) && from.has_partial();
  const Layout from_whole = from.without_partial();
  const bool same = !partial_source && from_whole == to_whole;
  // Backward of the producer reads its own copy, which is there unless the producer runs again.
  const bool producer_reads = table.producer_reads && !times.producer_again;
  const bool before_is_kept = table.before_is_kept || times.producer_again || producer_reads;
  const std::int64_t own = producer_reads ? before : 0;
  PairAlternatives result;
  const auto add = [&](Copy copy, std::int64_t memory, double time, double compute = 0) {
    const bool produced = copy == Copy::source || copy == Copy::before;
    result.item[result.count++] = {copy, own + memory, own + (produced ? memory : 0), time, compute};
  };
  const double repeated = plain + (same ? 0 : times.forward);
  // Not worth a place in the tables where the copy after is no larger, whatever the prices.
  const bool before_is_less = !same && !partial_source && (before_is_kept || before < after);
  const auto add_again = [&] {
    if (table.again.valid()) add(Copy::again, 0, repeated + times.again, times.again);
  };
  const auto add_restored = [&] {
    if (table.restores && producer_reads)
      result.item[result.count++] = {Copy::restore, after, 0, plain + times.restore};
  };

  // A consumer that keeps this input anyway finds it there.
  if (times.consumer_again && !table.consumer_saves) {
    if (!table.producer_must_agree || times.producer_again) add(Copy::again, 0, repeated + times.again, times.again);
    return result;
  }
  if (!table.consumer_saves) {
    add(Copy::none, 0, plain);
    return result;
  }
  if (table.always_again && table.again.valid()) {
    add_again();
    return result;
  }
  if (table.gathers_again && !partial_source && before < after) {
    add(Copy::before, before_is_kept ? 0 : before, repeated);
    return result;
  }
  switch (table.kind) {
    case PairKind::to_shared:
      add(same ? Copy::source : Copy::after, same && before_is_kept ? 0 : after, plain);
      // From the producer's layout the copy is made once more for all readers together. Where backward of one alone
      // reads it, that one may reshard for itself from there (from_shared); more choices for the residual stream, which
      // has such readers, would double the work of a search and change its curve by hundredths of a per cent.
      if (times.producer_again && !same)
        add(Copy::again, 0, repeated);
      else if (before_is_less && table.several_save && !table.stored_once)
        add(Copy::before, before_is_kept ? 0 : before, repeated);
      if (!same) add_restored();
      add_again();
      break;
    case PairKind::tie: add(same ? Copy::source : Copy::after, same ? 0 : after, plain); break;
    case PairKind::from_shared:
      if (same) {
        add(Copy::source, 0, plain);
      } else {
        if (!table.stored_once) add(Copy::after, after, plain);
        add(Copy::before, 0, repeated);
      }
      break;
    case PairKind::direct:
      if (same) {
        add(Copy::source, before_is_kept ? 0 : after, plain);
      } else {
        add(Copy::after, after, plain);
        if (before_is_less) add(Copy::before, before_is_kept ? 0 : before, repeated);
        add_restored();
      }
      add_again();
      break;
  }
  return result;
}

// `computed` receives which points of a table whose tensor may be computed again are that.
frontier::CostTable fill_table(const PairTable& table, const Prices& prices, const ReshardQuestions::Table& asked,
                               const std::vector<double>& answers, PairCompute& computed) {
  frontier::CostTable costs;
  const Mesh& mesh = prices.structure().mesh;
  const double times_each = prices.structure().micro_batches;
  std::vector<std::int64_t> after;
  for (const Layout& to : table.to) after.push_back(bytes_of(table, mesh, to));
  for (std::size_t r = 0; r < table.from.size(); ++r) {
    const double again =
        table.again.valid() ? prices.operators().forward_s(table.again, table.from_configurations[r]) : 0;
    if (table.again.valid()) computed.row_s.push_back(times_each * again);
    const std::int64_t before = bytes_of(table, mesh, table.from[r]);
    for (std::size_t c = 0; c < table.to.size(); ++c) {
      PairTimes times;
      times.again = again;
      times.forward = answers[asked.forward_of(r, c)];
      if (table.gradient && !gradients_meet(table, table.from[r], table.to[c]))
        times.backward = answers[asked.backward_of(r, c)];
      if (table.restores) times.restore = answers[asked.restore_of(r, c)];
      times.producer_again = !table.from_again.empty() && table.from_again[r];
      times.consumer_again = !table.to_again.empty() && table.to_again[c];
      const PairAlternatives found = alternatives_of(table, table.from[r], table.to[c], times, before, after[c]);
      frontier::CostPoint points[3];
      for (int i = 0; i < found.count; ++i) {
        points[i] = {found.item[i].memory, times_each * found.item[i].time};
        if (table.again.valid()) computed.again.push_back(found.item[i].compute > 0);
      }
      costs.add(std::span<const frontier::CostPoint>(points, static_cast<std::size_t>(found.count)));
    }
  }
  if (table.again.valid()) computed.offsets.assign(costs.offsets().begin(), costs.offsets().end());
  return costs;
}

}  // namespace

bool gradients_meet(const PairTable& table, const Layout& from, const Layout& to) {
  if (pair_starts_at_output(table.kind)) return false;
  Layout rest = to;
  for (std::size_t a = 0; a < rest.axis.size(); ++a)
    if (from.axis[a] == Layout::kPartial && rest.axis[a] == Layout::kPartial) rest.axis[a] = Layout::kReplicated;
  return rest == from.without_partial();
}

PairAlternatives pair_alternatives(const PairTable& table, const Mesh& mesh, const Layout& from, const Layout& to,
                                   const PairTimes& times) {
  return alternatives_of(table, from, to, times, bytes_of(table, mesh, from), bytes_of(table, mesh, to));
}

Prices::Prices(ScenarioPtr scenario, std::shared_ptr<const Structure> structure, const Prices* before, Finders finders)
    : scenario_(std::move(scenario)), structure_(std::move(structure)), finders_(std::move(finders)) {
  const auto& device = scenario_->cluster->device;
  const CollectiveModel collectives = collectives_of(*scenario_);
  resharding_ =
      before ? std::make_shared<const ReshardingModel>(*before->resharding(), collectives)
             : std::make_shared<const ReshardingModel>(
                   structure_->mesh, collectives, device.memory_bandwidth * device.memory_efficiency,
                   structure_->fewest_collectives ? ReshardingModel::Ways::fewest : ReshardingModel::Ways::cheapest);
  operators_ =
      std::make_unique<OperatorCostModel>(*scenario_, structure_->uses, *resharding_, structure_->micro_batches);
}

ReshardPath Prices::path(const PairTable& table, const Layout& from, const Layout& to) const {
  if (finders_.empty()) return resharding_->path(table.shape, table.element_bytes, from, to);
  ReshardPath best;
  for (const auto& finder : finders_) {
    ReshardPath found = resharding_->path_of(*finder, table.shape, table.element_bytes, from, to);
    if (&finder == &finders_.front() || found.time_s < best.time_s * (1 - kEqualTimes)) best = std::move(found);
  }
  return best;
}

// Something inside it, such as the mask of a dropout.
bool Prices::keeps_what_it_can_remake(OperatorId id) const {
  const Model& model = *structure_->model;
  const Operator& op = model.operators[id];
  const bool keeps = std::any_of(op.outputs.begin(), op.outputs.end(), [&](const Access& access) {
    return access.saved && model.tensors[access.tensor].role == TensorRole::internal;
  });
  return keeps && internals_can_be_recomputed(model, op);
}

std::vector<OperatorCostModel::Alternative> Prices::alternatives(const Variable& variable,
                                                                 std::size_t configuration) const {
  const auto& choices = *variable.choices;
  const Configuration& split = choices.configurations[configuration];
  if (!structure_->forced.empty() && structure_->forced[variable.op.index])
    return forced_alternatives(*this, variable, configuration, *structure_->forced[variable.op.index]);
  if (structure_->memory_choices)
    return operators_->alternatives(variable.op, split, !choices.again.empty() && choices.again[configuration]);
  MemoryChoice choice = structure_->choices.empty() ? structure_->choice.value_or(MemoryChoice{})
                                                    : structure_->choices[variable.op.index];
  if (!structure_->again.empty() && structure_->again[variable.op.index])
    choice.recompute =
        (!choices.again.empty() && choices.again[configuration]) || keeps_what_it_can_remake(variable.op);
  return {{choice, operators_->iteration(operators_->cost(variable.op, split, choice))}};
}

frontier::CostTable operator_costs(const Prices& prices, const Variable& variable, OperatorCompute& computed) {
  frontier::CostTable costs;
  for (std::size_t c = 0; c < variable.choices->configurations.size(); ++c) {
    std::vector<frontier::CostPoint> points;
    for (const auto& [choice, cost] : prices.alternatives(variable, c)) {
      points.push_back({cost.memory_bytes(), cost.time_s()});
      computed.seconds.push_back(cost.compute_s());
    }
    costs.add(points);
  }
  computed.offsets.assign(costs.offsets().begin(), costs.offsets().end());
  return costs;
}

double PricedProblem::compute_seconds(const Structure& s, const frontier::Point& point) const {
  double total = 0;
  for (std::size_t v = 0; v < s.variables.size(); ++v) {
    if (!s.variables[v].choices) continue;
    const OperatorCompute& own = operators[s.variables[v].cost_group];
    total += own.seconds[own.offsets[point.configs[v]] + point.node_alternatives[v]];
  }
  for (std::size_t p = 0; p < s.pairs.size(); ++p) {
    const Pair& pair = s.pairs[p];
    const PairCompute& own = pairs[pair.table];
    if (own.again.empty()) continue;
    const std::size_t row = pair.from_classes->of[point.configs[pair.from]],
                      column = pair.to_classes->of[point.configs[pair.to]];
    const std::size_t entry = row * pair.to_classes->layouts.size() + column;
    if (own.again[own.offsets[entry] + point.edge_alternatives[p]]) total += own.row_s[row];
  }
  return total;
}

Expected<PricedProblem> price_problem(const Prices& prices, ThreadPool& pool, const RunContext& context,
                                      RouteBook* routes, bool keep_routes) {
  const Structure& s = prices.structure();
  const ReshardQuestions& asked = *s.questions;
  const std::size_t count = asked.questions.size();
  assert(!keep_routes || routes->size() == count);
  const ReshardingModel& resharding = *prices.resharding();
  // 1. Answer what is asked, then fill the tables; both in parallel, each answer owned by one index.
  context.report("resharding costs", 0);
  std::vector<double> answers(asked.answers);
  if (routes) routes->resize(count);
  pool.for_each(count, [&](std::size_t i, int) {
    if (context.cancelled()) return;
    const ReshardQuestion& q = asked.questions[i];
    if (routes && !keep_routes) (*routes)[i] = resharding.routes(q.shape, q.element_bytes, q.from, q.to, (*routes)[i]);
    const std::vector<double> times =
        routes ? resharding.reprice((*routes)[i]) : resharding.times(q.shape, q.element_bytes, q.from, q.to);
    std::copy(times.begin(), times.end(), answers.begin() + static_cast<std::ptrdiff_t>(asked.first[i]));
  });
  std::vector<frontier::CostTable> tables(s.tables.size());
  PricedProblem priced;
  priced.pairs.resize(s.tables.size());
  pool.for_each(s.tables.size(), [&](std::size_t t, int) {
    if (context.cancelled()) return;
    tables[t] = fill_table(s.tables[t], prices, asked.tables[t], answers, priced.pairs[t]);
  });
  // 2. Operators, once per group of equal ones.
  priced.operators.resize(s.cost_groups);
  std::vector<frontier::CostTable> groups(s.cost_groups);
  pool.for_each(s.cost_groups, [&](std::size_t g, int) {
    if (context.cancelled()) return;
    groups[g] = operator_costs(prices, s.variables[s.group_example[g]], priced.operators[g]);
  });
  if (context.cancelled()) return cancelled_error();

  frontier::Problem& problem = priced.problem;
  std::map<std::size_t, frontier::CostTable> free_states;  // a shared tensor costs nothing by itself
  for (const auto& variable : s.variables) {
    frontier::Node node;
    if (variable.choices) {
      node.name = s.model->operators[variable.op].name;
      node.costs = groups[variable.cost_group];
    } else {
      node.name = s.model->tensors[s.uses.flows[variable.flow].tensor].name;
      auto& free = free_states[variable.size()];
      while (free.size() < variable.size()) free.add({0, 0.0});
      node.costs = free;
    }
    problem.nodes.push_back(std::move(node));
  }
  for (const auto& pair : s.pairs) {
    frontier::Edge edge;
    edge.from = pair.from;
    edge.to = pair.to;
    edge.from_class = pair.from_classes->of;
    edge.to_class = pair.to_classes->of;
    edge.rows = static_cast<std::uint32_t>(pair.from_classes->layouts.size());
    edge.columns = static_cast<std::uint32_t>(pair.to_classes->layouts.size());
    edge.costs = tables[pair.table];
    problem.edges.push_back(std::move(edge));
  }
  return priced;
}

}  // namespace turnpoint::search
