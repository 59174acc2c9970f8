// SPDX-License-Identifier: Apache-2.0
// Seeded problems of all shapes, and brute force over every configuration and alternative: the oracle of the engine.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <string>

#include "core/frontier/pareto.h"
#include "core/frontier/problem.h"

namespace turnpoint::frontier::test {

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}
  /// Uniform in [low, high]; made from raw bits, so the same on every standard library.
  std::uint32_t number(std::uint32_t low, std::uint32_t high) {
    return low + static_cast<std::uint32_t>(random_() % (high - low + 1));
  }
  double real(double low, double high) { return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53; }
  bool chance(double p) { return real(0, 1) < p; }

 private:
  std::mt19937_64 random_;
};

struct ProblemShape {
  std::uint32_t max_configs = 3, max_alternatives = 3;
  double forbidden = 0.1;
  bool integer_times = true;
  bool large_memory = false;
};

inline std::vector<CostPoint> random_entry(Generator& g, const ProblemShape& s) {
  std::vector<CostPoint> list;
  if (g.chance(s.forbidden)) return list;
  const std::uint32_t count = g.number(1, s.max_alternatives);
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::int64_t scale = s.large_memory ? (std::int64_t(1) << g.number(0, 45)) : 1;
    list.push_back({g.number(0, 12) * scale, s.integer_times ? double(g.number(0, 12)) : g.real(0, 1e-3)});
  }
  return list;
}

inline Node random_node(Generator& g, const ProblemShape& s) {
  Node node;
  node.name.assign(2, 'n');  // not = "n": g++ 12 warns falsely
  const std::uint32_t configs = g.number(1, s.max_configs);
  for (std::uint32_t c = 0; c < configs; ++c) node.costs.add(random_entry(g, s));
  return node;
}

inline Edge random_edge(Generator& g, const ProblemShape& s, const Problem& problem, std::uint32_t from,
                        std::uint32_t to) {
  Edge edge;
  edge.from = from;
  edge.to = to;
  const auto from_count = static_cast<std::uint32_t>(problem.nodes[from].costs.size()),
             to_count = static_cast<std::uint32_t>(problem.nodes[to].costs.size());
  const bool classes = g.chance(0.5);
  edge.rows = classes ? g.number(1, from_count + 1) : from_count;
  edge.columns = classes ? g.number(1, to_count + 1) : to_count;
  for (std::uint32_t i = 0; i < from_count; ++i) edge.from_class.push_back(classes ? g.number(0, edge.rows - 1) : i);
  for (std::uint32_t i = 0; i < to_count; ++i) edge.to_class.push_back(classes ? g.number(0, edge.columns - 1) : i);
  const bool repeat_rows = g.chance(0.3);
  std::vector<std::vector<CostPoint>> row;
  for (std::uint32_t r = 0; r < edge.rows; ++r)
    for (std::uint32_t c = 0; c < edge.columns; ++c) {
      if (r == 0 || !repeat_rows || g.chance(0.2))
        row.resize(std::max<std::size_t>(row.size(), c + 1)), row[c] = random_entry(g, s);
      edge.costs.add(row[c]);
    }
  return edge;
}

/// Graphs by kind: 0 chain, 1 tree, 2 diamonds, 3 ladder, 4 clique, 5 several components with isolated nodes, 6 random
/// with parallel edges, 7 cycle, 8 star.
inline std::vector<std::pair<std::uint32_t, std::uint32_t>> random_graph(Generator& g, std::uint32_t kind,
                                                                         std::uint32_t n) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges;
  const auto add = [&](std::uint32_t a, std::uint32_t b) {
    if (a < n && b < n && a != b) edges.push_back(g.chance(0.8) ? std::pair{a, b} : std::pair{b, a});
  };
  for (std::uint32_t i = 1; i < n; ++i) {
    switch (kind) {
      case 0: add(i - 1, i); break;
      case 1: add(g.number(0, i - 1), i); break;
      case 2:
        add(i - 1 - (i % 3 == 2), i);
        if (i % 3 == 0) add(i - 2, i);
        break;
      case 3:
        add(i - 1, i);
        if (i >= 2) add(i - 2, i);
        break;
      case 4:
        for (std::uint32_t j = 0; j < i; ++j) add(j, i);
        break;
      case 5:
        if (i % 3) add(i - 1, i);
        break;
      case 6:
        for (std::uint32_t j = g.number(0, 2); j-- > 0;) {
          const auto k = g.number(0, i - 1);
          add(k, i);
          if (g.chance(0.3)) add(k, i);
        }
        break;
      case 7:
        add(i - 1, i);
        if (i + 1 == n && n > 2) add(0, i);
        break;
      default: add(0, i); break;
    }
  }
  return edges;
}

inline Problem random_problem(std::uint64_t seed, std::uint32_t n, const ProblemShape& shape, std::uint32_t kind) {
  Generator g(seed);
  Problem problem;
  const bool repeated = g.chance(0.3);
  for (std::uint32_t i = 0; i < n; ++i)
    problem.nodes.push_back(repeated && i >= 2 ? problem.nodes[i - 2] : random_node(g, shape));
  for (const auto& [a, b] : random_graph(g, kind, n)) {
    problem.edges.push_back(random_edge(g, shape, problem, a, b));
    if (!repeated || problem.edges.size() < 2) continue;
    Edge copy = problem.edges[problem.edges.size() - 2];
    if (problem.nodes[copy.from].costs.size() != problem.nodes[a].costs.size() ||
        problem.nodes[copy.to].costs.size() != problem.nodes[b].costs.size())
      continue;
    copy.from = a;
    copy.to = b;
    problem.edges.back() = copy;
  }
  return problem;
}

/// All plans, one by one, with every alternative: the definition itself.
inline CostList brute_force(const Problem& problem) {
  CostList all;
  Point point;
  point.configs.assign(problem.nodes.size(), 0);
  point.node_alternatives.assign(problem.nodes.size(), 0);
  point.edge_alternatives.assign(problem.edges.size(), 0);
  std::function<void(std::size_t, std::int64_t, double)> edge_choice = [&](std::size_t k, std::int64_t m, double t) {
    if (k == problem.edges.size()) {
      all.push_back({m, t});
      return;
    }
    const Edge& e = problem.edges[k];
    for (const CostPoint& p :
         e.costs[std::size_t(e.from_class[point.configs[e.from]]) * e.columns + e.to_class[point.configs[e.to]]])
      edge_choice(k + 1, m + p.memory, t + p.time);
  };
  std::function<void(std::size_t, std::int64_t, double)> node_choice = [&](std::size_t i, std::int64_t m, double t) {
    if (i == problem.nodes.size()) {
      edge_choice(0, m, t);
      if (all.size() > 100000) all = reduce(std::move(all));
      return;
    }
    for (std::uint32_t c = 0; c < problem.nodes[i].costs.size(); ++c) {
      point.configs[i] = c;
      for (const CostPoint& p : problem.nodes[i].costs[c]) node_choice(i + 1, m + p.memory, t + p.time);
    }
  };
  node_choice(0, 0, 0);
  return reduce(std::move(all));
}

inline CostList costs_of(const Answer& answer) {
  CostList list;
  for (const Point& p : answer.points) list.push_back({p.memory, p.time});
  return list;
}

/// Equal as resources/manual/costs.md, 6, says: for every memory value the best times agree to 1e-9 relative (exactly
/// if `exact`).
inline bool equal_frontiers(const CostList& a, const CostList& b, bool exact) {
  if (exact) return a == b;
  const auto covered = [](const CostList& x, const CostList& y) {
    return std::all_of(x.begin(), x.end(),
                       [&](const CostPoint& p) { return time_at(y, p.memory) <= p.time * (1 + 1e-9) + 1e-300; });
  };
  return covered(a, b) && covered(b, a);
}

/// Either all of one kind or all of the other, nearly: to change between neighbours costs more than it brings. The
/// frontier is far above the line between its ends.
inline Problem bent(std::uint64_t seed, std::uint32_t nodes) {
  Generator g(seed);
  Problem problem;
  for (std::uint32_t i = 0; i < nodes; ++i) {
    const auto jitter = [&] { return static_cast<double>(g.number(0, 99)); };
    Node node{"n" + std::to_string(i), {}};
    node.costs.add(CostPoint{1 + g.number(0, 9), 100000 + jitter()});
    node.costs.add(CostPoint{50000 + g.number(0, 9), 60000 + jitter()});
    node.costs.add(CostPoint{100000 + g.number(0, 9), jitter()});
    problem.nodes.push_back(std::move(node));
    if (i == 0) continue;
    Edge edge{i - 1, i, {0, 1, 2}, {0, 1, 2}, 3, 3, {}};
    for (int r = 0; r < 3; ++r)
      for (int c = 0; c < 3; ++c) edge.costs.add(CostPoint{r == c ? 0 : 7, r == c ? 0.0 : 90000.0 * std::abs(r - c)});
    problem.edges.push_back(std::move(edge));
  }
  return problem;
}

}  // namespace turnpoint::frontier::test
