// SPDX-License-Identifier: Apache-2.0
// The list algebra: every table entry holds a frontier of (memory, time) with 32-bit back-pointers; a step unites
// products of lists. Exact with width 1; with a larger width only one point of an entry is kept per bucket of about
// that many bytes (coarse pass). Memory is never rounded: equal layers would make equal errors, which add up.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/dag.h"
#include "core/frontier/lagrange.h"
#include "core/frontier/pareto.h"

namespace turnpoint::frontier::detail {

/// Lists of one unique table.
struct ListTable {
  static constexpr std::size_t kPointBytes = 24;  ///< what a point takes
  std::vector<std::uint32_t> offsets;  ///< per entry, plus one
  std::vector<std::int64_t> memory;
  std::vector<double> time;
  std::vector<std::uint32_t> p, f;  ///< points of the inputs; for a leaf p is the point of the leaf, f unused

  std::size_t points() const { return p.size(); }
};

struct ListOptions {
  std::int64_t width = 1;  ///< bytes per bucket (a power of two is taken); 1: exact
  /// > 0, with width 1: of neighbours no farther apart than this, as a sum of shares of memory and time, one is kept:
  /// the one nearest to the hull; or, of `corners`, the corner below them all, so that no sum of points lies below all
  /// that is left, and nothing can be traced back.
  double near_memory = 0, near_time = 0;
  bool corners = false;
  std::vector<const LaneBlock*> bounds;            ///< pruning; empty: none
  const CostList* achieved = nullptr;              ///< exact: only points of the result below this staircase are wanted
  std::size_t max_points = std::size_t(11) << 22;  ///< all tables together; beyond, the pass gives up
  double max_products = 1e300;  ///< products of two points, all steps together; beyond, the pass gives up
};

enum class ListResult { done, stopped, too_large };

/// Runs all steps. The tables of `lists` are indexed by unique table; of inner tables only the back-pointers remain.
/// `products`, if given, is raised by the products of two points that were taken.
ListResult run_lists(const Dag& dag, const ListOptions& options, ThreadPool& pool, const Control& control,
                     const char* phase, std::vector<ListTable>& lists, double* products = nullptr);

/// The choices behind some points of the root table: [leaf table of the elimination][point]. Together, since neighbours
/// on a frontier share most of what they are made of.
void trace_lists(const Dag& dag, const std::vector<ListTable>& lists, std::span<const std::uint32_t> points,
                 std::vector<Choice>& choices);

}  // namespace turnpoint::frontier::detail
