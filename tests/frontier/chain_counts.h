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
  bool whole = true;                   ///< false: ended where lists became too long; `products` is of the beginning
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

/// All rows, by memory.
inline std::vector<Waiting> in_order(const std::vector<CostList>& rows) {
  std::vector<Waiting> waiting;
  std::size_t total = 0;
  for (const CostList& row : rows) total += row.size();
  waiting.reserve(total);
  for (std::uint32_t r = 0; r < rows.size(); ++r)
    for (const CostPoint& p : rows[r]) waiting.push_back({p.memory, p.time, r});
  std::sort(waiting.begin(), waiting.end(), [](const Waiting& a, const Waiting& b) { return a.memory < b.memory; });
  return waiting;
}

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

/// For a chain 0 - 1 - 2 ... with one edge between neighbours and one alternative per configuration. Holds one list per
/// class, not per configuration; about 100 bytes per tuple of those. Ends early where they would hold more than
/// `most_tuples`.
inline ChainCounts count_chain(const Problem& problem, ThreadPool& pool,
                               std::size_t most_tuples = std::numeric_limits<std::size_t>::max()) {
  ChainCounts counts;
  std::vector<CostList> columns{{{0, 0.0}}};                             // what arrives at the operator, per class
  std::vector<std::uint32_t> arrives(problem.nodes[0].costs.size(), 0);  // configuration -> its class there
  double products = double(arrives.size());
  // LDP's list of a configuration; times may become equal by rounding.
  const auto list_of = [&](std::size_t node, std::size_t config) {
    assert(problem.nodes[node].costs[config].size() == 1);
    const CostPoint cost = problem.nodes[node].costs[config][0];
    CostList list;
    list.reserve(columns[arrives[config]].size());
    for (const CostPoint& p : columns[arrives[config]])
      if (const double time = p.time + cost.time; list.empty() || time < list.back().time)
        list.push_back({p.memory + cost.memory, time});
    return list;
  };
  for (std::size_t i = 0;; ++i) {
    const bool last = i + 1 == problem.nodes.size();
    const std::vector<std::uint32_t> all_one_class(arrives.size(), 0);
    const Edge* edge = last ? nullptr : &problem.edges[i];
    assert(last || (edge->from == i && edge->to == i + 1));
    const auto& leaves = last ? all_one_class : edge->from_class;
    std::vector<CostList> rows(last ? 1 : edge->rows);
    std::vector<std::size_t> kept(rows.size(), 0);  // over the configurations of each class
    pool.for_each(rows.size(), [&](std::size_t r, int) {
      for (std::size_t a = 0; a < leaves.size(); ++a) {
        if (leaves[a] != r) continue;
        const CostList list = list_of(i, a);
        kept[r] += list.size();
        rows[r] = detail::merge_reduced(rows[r], list);
      }
    });
    std::size_t all = 0;
    for (const std::size_t k : kept) all += k;
    counts.step_products.push_back(products);
    counts.step_kept.push_back(all);
    counts.products += products;
    if (last) {
      counts.products += double(all);
      counts.frontier = std::move(rows[0]);
      return counts;
    }
    std::size_t held = 0;
    for (const CostList& row : rows) held += row.size();
    if (held > most_tuples) {
      counts.whole = false;
      return counts;
    }
    products = 0;
    for (std::uint32_t r = 0; r < edge->rows; ++r) {
      std::vector<std::size_t> sizes;
      for (std::uint32_t c = 0; c < edge->columns; ++c) {
        const auto entry = edge->costs[std::size_t(r) * edge->columns + c];
        sizes.push_back(reduce({entry.begin(), entry.end()}).size());
      }
      for (const std::uint32_t column : edge->to_class) products += double(kept[r]) * double(sizes[column]);
    }
    const std::vector<detail::Waiting> waiting = detail::in_order(rows);
    rows.clear();
    columns.assign(edge->columns, {});
    pool.for_each(edge->columns, [&](std::size_t c, int) {
      columns[c] = detail::cross(waiting, *edge, static_cast<std::uint32_t>(c));
    });
    arrives = edge->to_class;
  }
}

/// Tuples that FT-Elimination forms on such a chain of three operators or more, eliminating them from the first: for
/// every configuration of the first operator what LDP forms behind it, then the last pair.
inline double count_elimination(const Problem& problem, ThreadPool& pool) {
  const std::size_t configs = problem.nodes[0].costs.size();
  double products = double(configs) + double(count_chain(problem, pool).step_kept.back());
  Problem from_one = problem;
  for (std::size_t a = 0; a < configs; ++a) {
    from_one.nodes[0].costs = {};
    from_one.nodes[0].costs.add(CostPoint{0, 0.0});
    from_one.edges[0].from_class = {problem.edges[0].from_class[a]};
    const ChainCounts counts = count_chain(from_one, pool);
    for (std::size_t i = 2; i < counts.step_products.size(); ++i) products += counts.step_products[i];
    products += double(counts.step_kept.back());
  }
  return products;
}

}  // namespace turnpoint::frontier::test
