// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/level_search.h"

#include <cmath>

#include "core/frontier/solver.h"
#include "core/search/accpar/elimination.h"

namespace turnpoint::accpar {

namespace {

/// Types that a layer can have, by number.
using Possible = std::vector<std::vector<std::uint8_t>>;

Expected<Possible> possible_types(const LayerGraph& graph, const Shares& shares) {
  Possible possible(graph.layers.size());
  for (std::size_t l = 0; l < possible.size(); ++l) {
    for (std::uint8_t t = 0; t < kTypes; ++t)
      if (shares[l][t] > 0) possible[l].push_back(t);
    if (possible[l].empty())
      return too_small(graph.layers[l], "none of its lengths can be cut once more", "use fewer devices");
  }
  return possible;
}

/// The next level's costs of one type now and another then, of the part that the first half holds.
class NextPrices {
 public:
  NextPrices(const LayerGraph& graph, const Shares& shares, const NextLevel& next)
      : graph_(graph), now_(shares), next_(next), main_(main_inputs(graph)) {
    parts_.resize(graph.layers.size());
    for (std::size_t l = 0; l < parts_.size(); ++l)
      for (std::size_t t = 0; t < kTypes; ++t) {
        Part& part = parts_[l][t];
        part.layer = graph.layers[l];
        if (shares[l][t] > 0) cut(part.layer, kAllTypes[t], shares[l][t]);
        part.shares = share_of(part.layer);
      }
  }

  /// Types of the next level after type t now.
  std::vector<std::uint8_t> possible(std::size_t l, std::size_t t) const {
    std::vector<std::uint8_t> types;
    for (std::uint8_t u = 0; u < kTypes; ++u)
      if (parts_[l][t].shares[u] > 0) types.push_back(u);
    return types;
  }
  double layer(std::size_t l, std::size_t t, std::size_t u) const {
    if (main_[l] != kNoEdge) return 0;
    const Pair pair = own(l, t, u);
    return std::max(pair[0], pair[1]);
  }
  double edge(std::size_t e, std::size_t from_t, std::size_t from_u, std::size_t to_t, std::size_t to_u) const {
    Edge edge = graph_.edges[e];
    const Part &from = parts_[edge.from][from_t], &to = parts_[edge.to][to_t];
    const double left = remaining(graph_.layers[edge.to], edge.to_side, kAllTypes[to_t], now_[edge.to][to_t]);
    edge.forward *= left, edge.backward *= left;
    Pair pair = edge_charge(edge, {from.layer, kAllTypes[from_u], from.shares[from_u]},
                            {to.layer, kAllTypes[to_u], to.shares[to_u]}, next_.halves);
    if (main_[edge.to] == e) {
      const Pair more = own(edge.to, to_t, to_u);
      pair = {pair[0] + more[0], pair[1] + more[1]};
    }
    return std::max(pair[0], pair[1]);
  }

 private:
  struct Part {
    Layer layer;
    std::array<double, kTypes> shares{};
  };
  std::array<double, kTypes> share_of(const Layer& layer) const {
    LayerGraph one;
    one.layers.push_back(layer);
    return shares_of(one, next_.space, 0.5, next_.whole_units, next_.levels).front();
  }
  Pair own(std::size_t l, std::size_t t, std::size_t u) const {
    const Part& part = parts_[l][t];
    return layer_charge(part.layer, kAllTypes[u], part.shares[u], next_.halves);
  }

  const LayerGraph& graph_;
  const Shares& now_;
  const NextLevel& next_;
  std::vector<std::uint32_t> main_;
  std::vector<std::array<Part, kTypes>> parts_;
};

/// A state of the elimination: a type now and one for the next level.
struct TwoTypes {
  std::uint8_t now = 0, then = 0;
};

std::optional<std::vector<std::uint8_t>> eliminated(const LayerGraph& graph, const Possible& possible,
                                                    const LevelPrices& prices, const NextPrices* next,
                                                    const EliminationLimits& limits) {
  std::vector<std::vector<TwoTypes>> states(possible.size());
  TableSum problem;
  for (std::uint32_t l = 0; l < possible.size(); ++l) {
    for (const std::uint8_t t : possible[l]) {
      if (!next)
        states[l].push_back({t, 0});
      else
        for (const std::uint8_t u : next->possible(l, t)) states[l].push_back({t, u});
    }
    if (states[l].empty()) return std::nullopt;
    problem.states.push_back(static_cast<std::uint32_t>(states[l].size()));
  }
  for (std::uint32_t l = 0; l < possible.size(); ++l) {
    Table table{{l}, {}};
    for (const TwoTypes& s : states[l])
      table.costs.push_back({prices.layers[l][s.now], next ? next->layer(l, s.now, s.then) : 0});
    problem.tables.push_back(std::move(table));
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& edge = graph.edges[e];
    const auto cost = [&](const TwoTypes& from, const TwoTypes& to) {
      return PairCost{prices.edges[e][from.now * kTypes + to.now],
                      next ? next->edge(e, from.now, from.then, to.now, to.then) : 0};
    };
    Table table;
    if (edge.from == edge.to) {
      table.scope = {edge.from};
      for (const TwoTypes& s : states[edge.from]) table.costs.push_back(cost(s, s));
    } else if (edge.from < edge.to) {
      table.scope = {edge.from, edge.to};
      for (const TwoTypes& a : states[edge.from])
        for (const TwoTypes& b : states[edge.to]) table.costs.push_back(cost(a, b));
    } else {
      table.scope = {edge.to, edge.from};
      for (const TwoTypes& b : states[edge.to])
        for (const TwoTypes& a : states[edge.from]) table.costs.push_back(cost(a, b));
    }
    problem.tables.push_back(std::move(table));
  }
  const auto chosen = least_sum(problem, limits);
  if (!chosen) return std::nullopt;
  std::vector<std::uint8_t> types(states.size());
  for (std::size_t l = 0; l < types.size(); ++l) types[l] = states[l][(*chosen)[l]].now;
  return types;
}

LevelChoice choice_of(const LayerGraph& graph, const Shares& shares, const Halves& halves,
                      const std::vector<std::uint8_t>& types) {
  LevelChoice choice;
  for (std::size_t l = 0; l < types.size(); ++l) {
    choice.types.push_back(kAllTypes[types[l]]);
    choice.shares.push_back(shares[l][types[l]]);
  }
  choice.cost = level_cost(graph, choice.types, choice.shares, halves);
  return choice;
}

}  // namespace

bool allows(Space space, const Layer& layer, Type type) {
  switch (space) {
    case Space::all: return true;
    case Space::batch_or_reduction: return type != Type::output;
    case Space::one_weird_trick:
      // Where nothing is left to be summed over, the batch is what every layer has.
      return type == (layer.kind == LayerKind::fully_connected && layer.units(Type::reduction) >= 2 ? Type::reduction
                                                                                                    : Type::batch);
    case Space::batch: break;
  }
  return type == Type::batch;
}

int halvings(double units) { return units < 2 ? 0 : static_cast<int>(std::floor(std::log2(units))); }

Error too_small(const Layer& layer, const std::string& why, const char* remedy) {
  return {ErrorCode::infeasible, "layer '" + layer.name + "' is smaller than its group of devices: " + why, {}, remedy};
}

int halvings(const Layer& layer, Space space) {
  int sum = 0;
  for (const Type type : kAllTypes)
    if (allows(space, layer, type)) sum += halvings(layer.lengths[static_cast<std::size_t>(type)]);
  return allows(space, layer, Type::output) ? sum + halvings(layer.groups) : sum;
}

Shares shares_of(const LayerGraph& graph, Space space, double ratio, bool whole_units, Levels levels) {
  Shares shares(graph.layers.size());
  for (std::size_t l = 0; l < shares.size(); ++l) {
    const Layer& layer = graph.layers[l];
    const int all = halvings(layer, space);
    for (const Type type : kAllTypes) {
      const double units = layer.units(type);
      if (!allows(space, layer, type) || units < 2) continue;
      // What the other lengths do not give to the cuts below has to come from this one.
      const int others = all - halvings(units);
      const auto needed = [&](int cuts) {
        return cuts > others || whole_units ? std::exp2(std::max(0, cuts - others)) : 0;
      };
      const double least = needed(levels[0]), most = units - needed(levels[1]);
      if (least > most) continue;
      double first = units * ratio;
      if (whole_units) {
        first = std::floor(first);
        // The unit that is left over goes to whoever finishes first with it.
        if (first < units * ratio && (first + 1) / ratio <= (units - first) / (1 - ratio)) ++first;
      }
      shares[l][static_cast<std::size_t>(type)] = std::clamp(first, least, most) / units;
    }
  }
  return shares;
}

frontier::Problem frontier_problem(const LayerGraph& graph, const Shares& shares, const LevelPrices& prices) {
  frontier::Problem problem;
  std::vector<std::vector<std::size_t>> types(graph.layers.size());
  for (std::size_t l = 0; l < types.size(); ++l) {
    for (std::size_t t = 0; t < kTypes; ++t)
      if (shares[l][t] > 0) types[l].push_back(t);
    frontier::Node node{graph.layers[l].name, {}};
    for (const std::size_t t : types[l]) {
      double cost = prices.layers[l][t];
      for (std::size_t e = 0; e < graph.edges.size(); ++e)
        if (graph.edges[e].from == l && graph.edges[e].to == l) cost += prices.edges[e][t * kTypes + t];
      node.costs.add({0, cost});
    }
    problem.nodes.push_back(std::move(node));
  }
  const auto count = [&](std::uint32_t l) {
    std::vector<std::uint32_t> classes(types[l].size());
    for (std::uint32_t i = 0; i < classes.size(); ++i) classes[i] = i;
    return classes;
  };
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    const Edge& from = graph.edges[e];
    if (from.from == from.to) continue;
    frontier::Edge edge{from.from, from.to, count(from.from), count(from.to), 0, 0, {}};
    edge.rows = static_cast<std::uint32_t>(edge.from_class.size());
    edge.columns = static_cast<std::uint32_t>(edge.to_class.size());
    for (const std::size_t a : types[from.from])
      for (const std::size_t b : types[from.to]) edge.costs.add({0, prices.edges[e][a * kTypes + b]});
    problem.edges.push_back(std::move(edge));
  }
  return problem;
}

Expected<LevelChoice> choose_types(const LayerGraph& graph, const Shares& shares, const Halves& halves,
                                   Programme programme, const std::optional<NextLevel>& next, const RunContext& context,
                                   std::size_t max_table) {
  if (context.cancelled()) return cancelled_error();
  auto possible = possible_types(graph, shares);
  if (!possible) return possible.error();
  const LevelPrices prices = level_prices(graph, shares, halves);
  if (programme == Programme::published) {
    EliminationLimits limits;
    limits.max_neighbours = 2;
    const auto types = eliminated(graph, *possible, prices, nullptr, limits);
    if (!types)
      return usage_error(
          "the published programme solves chains with forks, and this network is neither: its branches "
          "cross");
    return choice_of(graph, shares, halves, *types);
  }
  if (next) {
    const NextPrices then(graph, shares, *next);
    EliminationLimits limits;
    limits.max_table = std::min(limits.max_table, max_table);
    if (const auto types = eliminated(graph, *possible, prices, &then, limits))
      return choice_of(graph, shares, halves, *types);
  }
  EliminationLimits limits;
  limits.max_table = max_table;
  if (const auto types = eliminated(graph, *possible, prices, nullptr, limits))
    return choice_of(graph, shares, halves, *types);
  frontier::SolveOptions options;
  options.enough_gap = kWideGap;
  const auto answer = frontier::Solver().solve(frontier_problem(graph, shares, prices), options, context);
  if (!answer) return answer.error();
  std::vector<std::uint8_t> types(graph.layers.size());
  const frontier::Point& fastest = answer->points.back();
  for (std::size_t l = 0; l < types.size(); ++l) types[l] = (*possible)[l][fastest.configs[l]];
  LevelChoice choice = choice_of(graph, shares, halves, types);
  choice.exact = answer->exact;
  return choice;
}

}  // namespace turnpoint::accpar
