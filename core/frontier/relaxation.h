// SPDX-License-Identifier: Apache-2.0
// A problem whose elimination is too wide, made narrow: the variables that stand in the way are split into one copy per
// edge (a mini-bucket relaxation). What the copies cost together is never more than what one choice for all of them
// does.
#pragma once

#include <utility>
#include <vector>

#include "core/frontier/dag.h"

namespace turnpoint::frontier::detail {

/// Variables that must be fixed before the rest can be eliminated at little cost.
std::vector<std::uint32_t> find_cut(const Graph& graph, std::size_t max_table, const Control& control,
                                    const Policy& policy = {});

/// The graph in which every cut variable has one copy per edge end; each copy carries an equal share of the costs.
struct Relaxation {
  /// Copies that look at equal tables (a weight shared by many layers) have their multipliers in common, so that equal
  /// layers stay equal and are computed once.
  struct Copies {
    std::vector<std::uint32_t> first;               ///< per group: one of its copies in `graph`
    std::vector<double> count;                      ///< per group
    std::vector<std::vector<std::uint32_t>> all{};  ///< per group: its copies
  };
  Graph graph;
  std::vector<Copies> copies;           ///< per cut variable
  std::vector<std::uint32_t> original;  ///< variable of `graph` -> variable of the whole
};
Relaxation relax(const Graph& graph, const std::vector<std::uint32_t>& cut);

/// Copies are summed out into tables over one neighbour, which only a tiny limit can forbid; the relaxation must not
/// fail.
Elimination eliminate_relaxed(const Graph& graph, std::size_t max_table, const Control& control,
                              const Policy& policy = {});

}  // namespace turnpoint::frontier::detail
