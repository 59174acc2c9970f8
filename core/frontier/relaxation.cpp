// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/relaxation.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace turnpoint::frontier::detail {

std::vector<std::uint32_t> find_cut(const Graph& graph, std::size_t max_table, const Control& control,
                                    const Policy& policy) {
  std::vector<std::vector<std::uint32_t>> fixed(graph.variables.size());
  std::vector<std::uint32_t> cut;
  for (;;) {
    const Elimination plan = eliminate(restrict_states(graph, fixed), max_table, control.stop(), policy);
    if (control.cancelled()) return cut;
    if (!plan.too_wide) {
      if (plan.terms <= policy.wide_terms || plan.largest_table < 2) return cut;
      max_table = std::min(plan.largest_table, max_table) / 2;
      continue;
    }
    cut.push_back(plan.stuck);
    fixed[plan.stuck] = {0};
  }
}

Relaxation relax(const Graph& graph, const std::vector<std::uint32_t>& cut) {
  Relaxation result{graph, {}, {}};
  Graph& g = result.graph;
  for (std::uint32_t v = 0; v < graph.variables.size(); ++v) result.original.push_back(v);
  for (const std::uint32_t w : cut) {
    Relaxation::Copies copies;
    std::size_t ends = 0;
    for (const Factor& f : g.factors) ends += (f.a == w) + (f.b == w);
    const Leaf& whole = *graph.leaves[graph.variables[w].leaf];
    const auto share = static_cast<std::int64_t>(std::max<std::size_t>(1, ends));
    Leaf part;
    part.offsets = whole.offsets;
    for (const std::int64_t m : whole.memory) part.memory.push_back(m / share);
    // Rounded down a little, so that the shares never exceed the whole.
    for (const double t : whole.time) part.time.push_back(t / static_cast<double>(share) * (1 - 1e-15));
    std::uint32_t copy = w;
    std::map<std::tuple<std::uint32_t, bool, std::vector<std::uint32_t>>, std::size_t> groups;
    for (Factor& f : g.factors) {
      if (f.a != w && f.b != w) continue;
      const bool at_a = f.a == w;
      const auto [group, fresh] =
          groups.try_emplace({f.leaf, at_a, at_a ? f.row_of : f.column_of}, copies.first.size());
      if (group->second > 0 || !fresh) {
        copy = static_cast<std::uint32_t>(g.variables.size());
        g.variables.push_back(g.variables[w]);
        result.original.push_back(w);
      }
      g.variables[copy].origin = kNoOrigin;
      if (fresh) {
        // Its own, although equal to that of other groups: it gets its own multipliers.
        g.variables[copy].leaf = static_cast<std::uint32_t>(g.leaves.size());
        g.leaves.push_back(std::make_shared<const Leaf>(part));
        copies.first.push_back(copy);
        copies.count.push_back(1);
        copies.all.emplace_back();
      } else {
        g.variables[copy].leaf = g.variables[copies.first[group->second]].leaf;
        copies.count[group->second] += 1;
      }
      copies.all[group->second].push_back(copy);
      (at_a ? f.a : f.b) = copy;
    }
    if (copies.first.empty()) {
      copies.first.push_back(w);
      copies.count.push_back(1);
      copies.all.push_back({w});
    }
    result.copies.push_back(std::move(copies));
  }
  return result;
}

Elimination eliminate_relaxed(const Graph& graph, std::size_t max_table, const Control& control, const Policy& policy) {
  for (const Variable& v : graph.variables) max_table = std::max<std::size_t>(max_table, v.states);
  for (;; max_table *= 2) {
    Elimination plan = eliminate(graph, max_table, control.stop(), policy);
    if (!plan.too_wide || control.cancelled()) return plan;
  }
}

}  // namespace turnpoint::frontier::detail
