// SPDX-License-Identifier: Apache-2.0
// The frontier-tracking algorithms as they were published, for comparison with the engine (solver.h): Algorithms 1 to 3
// of the TensorOpt study with its four eliminations, and FT-Elimination, the study's baseline. Per pair of
// *configurations*, by literal product, sort and reduce; no bounds, no layouts, no shared tables. Large problems take
// hours, which is the point of the comparison.
//
// Source: TensorOpt, arXiv 2004.10856, Algorithms 1 (reduce), 2 (FT), 3 (LDP), equations 4 (node elimination), 5
// (edge), 6 (branch), 7 (heuristic). The numbered pitfalls of the equations are corrected, see below.
//
// What runs, in a loop until only the linear spine is left:
//   marking       the first operator in topological order is marked; whenever the last marked operator has exactly one
//                 downstream operator, that one too. Marked operators are never eliminated.
//   Eq. 5 edge    parallel edges become one: the product of their lists per pair of configurations
//   Eq. 4 node    an operator between two: union over its configurations of edge (x) operator (x) edge
//   Eq. 6 branch  an operator is merged into its consumer, whose configurations become pairs; legal only where no other
//                 directed path leads from the one to the other and the pairs are at most max_merged_configs
//   Eq. 7 heuristic  one configuration of an operator is fixed; the answer is then no longer exact
// then LDP along the spine, or (FT-Elimination, nothing marked) brute force over the two operators that are left;
// eliminations are unrolled last to first.
//
// Differences from the paper (none changes a frontier that the paper's text would give correctly):
//   - Algorithm 1 sorts by (memory, time): by memory alone, equal memory keeps dominated tuples.
//   - Eq. 7 as printed loses the fixed operator's own cost and its in-edges: the first goes into a constant, the edges
//   to
//     their other ends.
//   - An operator with a single neighbour is minimised into it directly, one with none into the constant: exact, and
//     what removes sources, losses and constants cheaply. Tried after Eq. 4, so that FT-Elimination still pays K^3 on a
//     chain.
//   - Marks are made anew in every turn of the loop, from the same first operator: a branch merge may give a spine
//     operator a second consumer.
//   - Pending tuples are reduced every 2^18: the same list, bounded memory, and a stop request is heard.
//   - Where the directions of the edges form no DAG, edges run from the lower to the higher index.
//   - Forbidden combinations (empty lists) exist. Eq. 7 fixes no configuration that forbids all of a neighbour's.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/frontier/problem.h"

namespace turnpoint::frontier {

enum class PublishedAlgorithm { dynamic_programme, elimination };

/// Which configuration Eq. 7 fixes: that of least memory, or of the least sum of memory and time, each relative to the
/// largest among the operator's configurations.
enum class PublishedHeuristic { least_memory, weighted };

struct PublishedOptions {
  PublishedAlgorithm algorithm = PublishedAlgorithm::dynamic_programme;
  PublishedHeuristic heuristic = PublishedHeuristic::weighted;
  std::size_t max_merged_configs = 4096;
  std::size_t max_bytes = std::size_t(2) << 30;  ///< all tables; beyond, the run ends with an error
  double time_limit_s = 0;                       ///< > 0: beyond, the run ends with an error
  /// Not as printed: tuples that what is already there beats are dropped before they are sorted. Same tables, a
  /// fraction of the time; for runs that are to see the end, not to be timed.
  bool drop_early = false;
  /// No tuple's origin is kept, so the answer's points have costs but no plan. What is kept for plans is most of the
  /// memory of a long elimination: (60, 60, 12) of layered_chain.py does not fit into 20 GiB with it.
  bool costs_only = false;
};

/// What a run did; filled as far as it came even where it ends with an error.
struct PublishedReport {
  std::size_t nodes = 0, edges = 0, branches = 0, folds = 0, heuristics = 0;  ///< eliminations of each kind
  double products = 0;                                                        ///< tuples formed before any reduce
  double seconds = 0;
  std::size_t chain = 0;               ///< operators of the final chain
  std::vector<double> step_products;   ///< per completed step of the LDP: tuples formed
  std::vector<std::size_t> step_kept;  ///< and kept, over all configurations
  std::vector<CostPoint> tuples;       ///< the final list as the tables have it, before any plan is unrolled
};

/// Errors: infeasible (no solution; or the time or memory limit is reached, saying where), cancelled.
/// `exact` unless Eq. 7 was used; then `certified` is false, since nothing bounds what it may have cost.
/// The same answer on any number of threads.
Expected<Answer> solve_published(const Problem& problem, const PublishedOptions& options, const RunContext& context,
                                 PublishedReport* report = nullptr);

}  // namespace turnpoint::frontier
