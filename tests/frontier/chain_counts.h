// SPDX-License-Identifier: Apache-2.0
// How large every list of the published dynamic programme (LDP) becomes on a chain, without running it: the same lists
// by a pass over layouts. What it keeps is what LDP keeps, to the last bit: dominated tuples stay dominated when the
// same cost is added to both (rounding is monotone), and sums are formed in LDP's order.
#pragma once

#include <algorithm>
#include <cassert>
#include <limits>
#include <map>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/pareto.h"

namespace turnpoint::frontier::test {

struct ChainCounts {
  std::vector<double> step_products;   ///< tuples that LDP forms in each step, before reducing
  std::vector<std::size_t> step_kept;  ///< tuples it keeps, over all configurations
  double products = 0;                 ///< all steps and the last union
  CostList frontier;
};

namespace detail {

/// Both sorted by memory, then time; the reduced union.
inline CostList merge_reduced(const CostList& a, const CostList& b) {
  CostList out;
  out.reserve(a.size() + b.size());
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const bool left =
        j == b.size() ||
        (i < a.size() && (a[i].memory < b[j].memory || (a[i].memory == b[j].memory && a[i].time <= b[j].time)));
    const CostPoint& p = left ? a[i++] : b[j++];
    if (out.empty() || p.time < out.back().time) out.push_back(p);
  }
  return out;
}

inline CostList unite_all(std::vector<CostList> lists) {
  for (std::size_t width = 1; width < lists.size(); width *= 2)
    for (std::size_t i = 0; i + width < lists.size(); i += 2 * width)
      lists[i] = merge_reduced(lists[i], lists[i + width]);
  return lists.empty() ? CostList() : std::move(lists.front());
}

/// A tuple that waits at a class of the edge.
struct Waiting {
  std::int64_t memory;
  double time;
  std::uint32_t row;
};

/// Everything that waits, at one class of the other end: one walk per amount of memory that the edge may add, merged.
inline CostList cross(const std::vector<Waiting>& waiting, const Edge& edge, std::uint32_t column) {
  std::map<std::int64_t, std::vector<double>> added;  // memory -> per row the least time, infinity where there is none
  for (std::uint32_t r = 0; r < edge.rows; ++r)
    for (const CostPoint& p : edge.costs[std::size_t(r) * edge.columns + column]) {
      auto& times = added.try_emplace(p.memory, edge.rows, std::numeric_limits<double>::infinity()).first->second;
      times[r] = std::min(times[r], p.time);
    }
  std::vector<CostList> lists;
  for (const auto& [memory, times] : added) {
    CostList list;
    for (const Waiting& w : waiting) {
      const double time = w.time + times[w.row];
      if (!list.empty() && time >= list.back().time) continue;
      if (time == std::numeric_limits<double>::infinity()) continue;
      if (!list.empty() && list.back().memory == w.memory + memory)
        list.back().time = time;
      else
        list.push_back({w.memory + memory, time});
    }
    lists.push_back(std::move(list));
  }
  return unite_all(std::move(lists));
}

}  // namespace detail

/// For a chain 0 - 1 - 2 ... with one edge between neighbours and one alternative per configuration.
inline ChainCounts count_chain(const Problem& problem, ThreadPool& pool) {
  ChainCounts counts;
  std::vector<CostList> lists;  // per configuration of the current operator: what LDP's list holds
  const auto done = [&](double products) {
    std::size_t kept = 0;
    for (const CostList& list : lists) kept += list.size();
    counts.step_products.push_back(products);
    counts.step_kept.push_back(kept);
    counts.products += products;
  };
  const auto cost_of = [&](std::size_t node, std::size_t config) {
    const auto entry = problem.nodes[node].costs[config];
    assert(entry.size() == 1);
    return entry[0];
  };
  for (std::size_t a = 0; a < problem.nodes[0].costs.size(); ++a) lists.push_back({cost_of(0, a)});
  done(double(lists.size()));
  for (std::size_t i = 1; i < problem.nodes.size(); ++i) {
    const Edge& edge = problem.edges[i - 1];
    assert(edge.from == i - 1 && edge.to == i);
    std::vector<double> choices(edge.rows, 0);  // per row: over all configurations of the other end
    for (std::uint32_t r = 0; r < edge.rows; ++r) {
      std::vector<std::size_t> sizes;
      for (std::uint32_t c = 0; c < edge.columns; ++c) {
        const auto entry = edge.costs[std::size_t(r) * edge.columns + c];
        sizes.push_back(reduce({entry.begin(), entry.end()}).size());
      }
      for (const std::uint32_t column : edge.to_class) choices[r] += double(sizes[column]);
    }
    double products = 0;
    for (std::size_t a = 0; a < lists.size(); ++a) products += double(lists[a].size()) * choices[edge.from_class[a]];
    std::vector<CostList> rows(edge.rows);
    pool.for_each(edge.rows, [&](std::size_t r, int) {
      std::vector<CostList> here;
      for (std::size_t a = 0; a < lists.size(); ++a)
        if (edge.from_class[a] == r) here.push_back(lists[a]);
      rows[r] = detail::unite_all(std::move(here));
    });
    std::vector<detail::Waiting> waiting;
    for (std::uint32_t r = 0; r < edge.rows; ++r)
      for (const CostPoint& p : rows[r]) waiting.push_back({p.memory, p.time, r});
    std::sort(waiting.begin(), waiting.end(),
              [](const detail::Waiting& a, const detail::Waiting& b) { return a.memory < b.memory; });
    std::vector<CostList> columns(edge.columns);
    pool.for_each(edge.columns, [&](std::size_t c, int) {
      columns[c] = detail::cross(waiting, edge, static_cast<std::uint32_t>(c));
    });
    std::vector<CostList> next(problem.nodes[i].costs.size());
    pool.for_each(next.size(), [&](std::size_t b, int) {
      const CostPoint cost = cost_of(i, b);
      for (const CostPoint& p : columns[edge.to_class[b]])  // times may become equal by rounding
        if (const double time = p.time + cost.time; next[b].empty() || time < next[b].back().time)
          next[b].push_back({p.memory + cost.memory, time});
    });
    lists = std::move(next);
    done(products);
  }
  for (const CostList& list : lists) counts.products += double(list.size());
  counts.frontier = detail::unite_all(std::move(lists));
  return counts;
}

}  // namespace turnpoint::frontier::test
