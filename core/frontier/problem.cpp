// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace turnpoint::frontier {

namespace {

constexpr std::int64_t kMaxMemory = std::int64_t(1) << 53;
constexpr std::size_t kMaxAlternatives = 65535;  // a choice is stored in 16 bits

/// Largest memory and time of any alternative, for the checks on sums.
struct Largest {
  std::int64_t memory = 0;
  double time = 0;
};

Expected<Largest> check_costs(const CostTable& costs, const std::string& where) {
  Largest largest;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    if (costs[i].size() > kMaxAlternatives) return bad_input("more than 65535 alternatives in one entry", where);
    for (const CostPoint& p : costs[i]) {
      if (p.memory < 0) return bad_input("memory " + std::to_string(p.memory) + " is negative", where);
      if (p.memory > kMaxMemory) return bad_input("memory " + std::to_string(p.memory) + " is above 2^53", where);
      if (!std::isfinite(p.time)) return bad_input("time is not a finite number", where);
      if (p.time < 0) return bad_input("time is negative", where);
      largest.memory = std::max(largest.memory, p.memory);
      largest.time = std::max(largest.time, p.time);
    }
  }
  return largest;
}

Expected<void> check_classes(const std::vector<std::uint32_t>& classes, std::size_t configurations, std::uint32_t limit,
                             const char* key, const std::string& where) {
  if (classes.size() != configurations)
    return bad_input(std::string(key) + " has " + std::to_string(classes.size()) + " entries, the node has " +
                         std::to_string(configurations) + " configurations",
                     where);
  for (const std::uint32_t c : classes)
    if (c >= limit)
      return bad_input(
          std::string(key) + " names class " + std::to_string(c) + ", the table has " + std::to_string(limit), where);
  return {};
}

std::string node_place(const Problem& problem, std::size_t i) {
  return "node " + std::to_string(i) + (problem.nodes[i].name.empty() ? "" : " '" + problem.nodes[i].name + "'");
}

}  // namespace

Expected<void> validate(const Problem& problem) {
  std::int64_t memory = 0;
  double time = 0;
  const auto add = [&](const Largest& largest, const std::string& where) -> Expected<void> {
    if (largest.memory > std::numeric_limits<std::int64_t>::max() - memory)
      return bad_input("sums of memory reach 2^63", where);
    memory += largest.memory;
    time += largest.time;
    if (!std::isfinite(time)) return bad_input("sums of time overflow", where);
    return {};
  };
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const std::string where = node_place(problem, i);
    if (problem.nodes[i].costs.size() == 0) return bad_input("has no configuration", where);
    const auto largest = check_costs(problem.nodes[i].costs, where);
    if (!largest) return largest.error();
    if (auto sum = add(*largest, where); !sum) return sum;
  }
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const Edge& edge = problem.edges[k];
    const std::string where = "edge " + std::to_string(k);
    for (const std::uint32_t end : {edge.from, edge.to})
      if (end >= problem.nodes.size())
        return bad_input("names node " + std::to_string(end) + ", there are " + std::to_string(problem.nodes.size()),
                         where);
    if (edge.from == edge.to) return bad_input("joins node " + std::to_string(edge.from) + " to itself", where);
    if (std::size_t(edge.rows) * edge.columns != edge.costs.size())
      return bad_input("has " + std::to_string(edge.costs.size()) + " cost entries for " + std::to_string(edge.rows) +
                           " x " + std::to_string(edge.columns) + " classes",
                       where);
    const Node &from = problem.nodes[edge.from], &to = problem.nodes[edge.to];
    if (auto ok = check_classes(edge.from_class, from.costs.size(), edge.rows, "from_class", where); !ok) return ok;
    if (auto ok = check_classes(edge.to_class, to.costs.size(), edge.columns, "to_class", where); !ok) return ok;
    const auto largest = check_costs(edge.costs, where);
    if (!largest) return largest.error();
    if (auto sum = add(*largest, where); !sum) return sum;
  }
  return {};
}

CostPoint evaluate(const Problem& problem, const Point& point) {
  CostPoint sum;
  const auto add = [&](const CostPoint& p) {
    sum.memory += p.memory;
    sum.time += p.time;
  };
  for (std::size_t i = 0; i < problem.nodes.size(); ++i)
    add(problem.nodes[i].costs[point.configs[i]][point.node_alternatives[i]]);
  for (std::size_t k = 0; k < problem.edges.size(); ++k) {
    const Edge& edge = problem.edges[k];
    const std::size_t row = edge.from_class[point.configs[edge.from]], column = edge.to_class[point.configs[edge.to]];
    add(edge.costs[row * edge.columns + column][point.edge_alternatives[k]]);
  }
  return sum;
}

}  // namespace turnpoint::frontier
