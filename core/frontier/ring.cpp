// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/ring.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace turnpoint::frontier::detail {

namespace {

constexpr std::uint32_t kFar = std::numeric_limits<std::uint32_t>::max();

/// Factors with a choice at both ends, as a graph over the variables.
class Rings {
 public:
  explicit Rings(const Graph& graph)
      : graph_(graph), neighbours_(graph.variables.size()), seen_(graph.variables.size(), kFar) {
    for (std::uint32_t k = 0; k < graph.factors.size(); ++k) {
      if (!chooses(k)) continue;
      neighbours_[graph.factors[k].a].emplace_back(graph.factors[k].b, k);
      neighbours_[graph.factors[k].b].emplace_back(graph.factors[k].a, k);
    }
    find_bridges();
  }

  bool chooses(std::uint32_t k) const { return graph_.factors[k].rows >= 2 && graph_.factors[k].columns >= 2; }

  /// Whether it lies on a ring, and on none of fewer than `steps` others. Counts what it looks at.
  bool closes_long(std::uint32_t k, std::size_t steps, double& looked_at) {
    if (bridge_[k]) return false;
    const Factor& f = graph_.factors[k];
    std::vector<std::uint32_t> at{f.a}, next;
    seen_[f.a] = k;
    for (std::size_t step = 1; step < steps && !at.empty(); ++step) {
      next.clear();
      for (const std::uint32_t v : at)
        for (const auto& [other, factor] : neighbours_[v]) {
          ++looked_at;
          if (factor == k || seen_[other] == k) continue;
          if (other == f.b) return false;
          seen_[other] = k;
          next.push_back(other);
        }
      at.swap(next);
    }
    return true;
  }

 private:
  /// Tarjan: a factor is on no ring where nothing below it reaches above it.
  void find_bridges() {
    bridge_.assign(graph_.factors.size(), 0);
    std::vector<std::uint32_t> number(graph_.variables.size(), kFar), low(number);
    struct Visit {
      std::uint32_t variable, by;
      std::size_t next = 0;
    };
    std::vector<Visit> stack;
    std::uint32_t count = 0;
    for (std::uint32_t root = 0; root < number.size(); ++root) {
      if (number[root] != kFar) continue;
      stack.push_back({root, kFar});
      number[root] = low[root] = count++;
      while (!stack.empty()) {
        const auto [v, by, next] = stack.back();
        if (next < neighbours_[v].size()) {
          ++stack.back().next;
          const auto [other, factor] = neighbours_[v][next];
          if (factor == by) continue;
          if (number[other] != kFar) {
            low[v] = std::min(low[v], number[other]);
            continue;
          }
          number[other] = low[other] = count++;
          stack.push_back({other, factor});
          continue;
        }
        stack.pop_back();
        if (stack.empty()) continue;
        const std::uint32_t above = stack.back().variable;
        low[above] = std::min(low[above], low[v]);
        if (low[v] > number[above]) bridge_[by] = 1;
      }
    }
  }

  const Graph& graph_;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> neighbours_;  // (variable, factor)
  std::vector<char> bridge_;
  std::vector<std::uint32_t> seen_;  // per variable: the last factor whose rings came by
};

}  // namespace

std::uint32_t ring_pivot(const Graph& graph, double most_steps, const Policy& policy) {
  Rings rings(graph);
  std::uint32_t narrowest = std::numeric_limits<std::uint32_t>::max(), pivot = kNoPivot;
  double looked_at = 0;
  for (std::uint32_t k = 0; k < graph.factors.size(); ++k) {
    const Factor& f = graph.factors[k];
    // Every factor that the ring must pass sees it equally long; it is cut where it is narrowest (the last of equals).
    const std::uint32_t width = std::min(f.rows, f.columns);
    if (!rings.chooses(k) || width > narrowest) continue;
    const bool closes = rings.closes_long(k, policy.short_part, looked_at);
    if (looked_at > most_steps) return kNoPivot;
    if (!closes) continue;
    narrowest = width;
    pivot = f.columns <= f.rows ? f.b : f.a;
  }
  return pivot;
}

}  // namespace turnpoint::frontier::detail
