// SPDX-License-Identifier: Apache-2.0
// Exact and coarse solution of frontier problems by variable elimination.
#pragma once

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/base/progress.h"
#include "core/frontier/policy.h"
#include "core/frontier/problem.h"
#include "core/frontier/work.h"

namespace turnpoint::frontier {

enum class Pass {
  exact,   ///< certified exact, or (where the width is too large) achievable + lower bound + gap
  coarse,  ///< quantised: every point is a real plan, re-costed exactly, with a lower bound and a gap
  bounds,  ///< plans of the convex hull and mixtures of its neighbours, with a lower bound and a gap; go_on() may
           ///< follow
};

struct SolveOptions {
  Pass pass = Pass::exact;
  int buckets = 1024;  ///< memory resolution of the coarse pass
  /// > 0: plans above it are not returned; if none fits, the single plan of least memory is.
  std::int64_t memory_limit = 0;
  std::size_t max_table =
      std::size_t(1) << 22;  ///< largest table (product of states) before the width counts as too large
  /// Products of points that one exact pass may take (a measure of work that does not depend on the machine). Beyond
  /// them the answer is what was achieved, with the lower bound that was proven.
  double max_products = 5e9;
  double time_limit_s = 0;  ///< > 0: after this the best achievable answer with its gap is returned
  /// Problems with fewer products of lists are small: solved at once, without bounds, and as sketches as far as
  /// Policy::short_products allows, whatever was asked before.
  std::size_t direct_terms = 20000;
  /// From so many on, the states that plans on the convex hull use are solved on their own first.
  std::size_t restrict_terms = 2000000;
  /// Plans of another problem, memory rising and time falling: only what improves on them is looked for, once the hull
  /// is found, and the lower bound is theirs, too.
  std::vector<CostPoint> known;
  /// Plans that are slower are not looked for, once the hull is found, and the gap says nothing of them; the lower
  /// bound does. Seconds.
  double slowest = std::numeric_limits<double>::infinity();
  /// > 0: where the whole frontier cannot be had at once, an exact pass proves a gap as small as this (0.003, 0.001,
  /// ...) and no smaller one.
  double enough_gap = 0;
  /// > 0, with enough_gap: once that gap is proven, the whole frontier is looked for within so many products.
  double whole_products = 0;
  bool hull_only = false;  ///< coarse: plans of the previous answer at new costs and those of the new hull, no more
  /// > 0: a coarse pass of one round only, within about so many products of points; its resolution follows from what
  /// the passes before it took (a small problem under a slider that is dragged).
  double live_products = 0;
  bool live_rests = false;  ///< the last of such passes: a second round where the frontier is steep
  Policy policy{};          ///< what decides how the work is spent; of one solver always the same
  bool begun = false;       ///< coarse: goes on from begin_coarse() of the same problem, the solver's last call
};

class Orders;

/// Keeps elimination order, classes and memory between runs in which only costs change (a bandwidth slider).
class Solver {
 public:
  /// `orders`: where it is shared with other solvers.
  explicit Solver(std::shared_ptr<Orders> orders = nullptr);
  ~Solver();

  /// Solves. If the problem has the structure of the previous call (same nodes, configurations, edges and classes)
  /// everything that does not depend on costs is re-used. A coarse pass at new costs is then quick; asked for once more
  /// at the same costs, it is refined (a slider that has come to rest). An exact pass gives the same answer whatever
  /// was asked before, on any number of threads. Errors: infeasible (no solution), cancelled. Not thread-safe; one
  /// Solver per thread of work.
  Expected<Answer> solve(const Problem& problem, const SolveOptions& options, const RunContext& context);
  /// The first half of a coarse pass: what the plans with which it begins cost in this problem, memory rising and time
  /// falling; none without an earlier one of the same structure. A coarse solve() that says that it has `begun` goes on
  /// from there. Errors: cancelled.
  Expected<std::vector<CostPoint>> begin_coarse(const Problem& problem, const SolveOptions& options,
                                                const RunContext& context);
  /// Within one memory.
  struct Within {
    std::int64_t memory = 0;  ///< bytes, > 0
    /// What is achieved elsewhere, seconds: where it could be improved on by less than `enough_gap`, the search ends.
    double known = std::numeric_limits<double>::infinity();
  };
  /// The fastest plan within each of these memories alone, in their order, or the plan of least memory where none fits,
  /// at a small part of the work; no plan where the problem is too wide for one to be found. The lower bound is one
  /// point: no plan needs less memory, and none within the limit less time. `exact` and `gap` are that plan's own, of
  /// its time, or of its memory where it does not fit. `like`: lines that bound a problem like this one, whose slopes
  /// are a good start; may be empty. The same whatever was asked before. Errors as above.
  Expected<std::vector<Answer>> fastest(const Problem& problem, std::span<const Within> within,
                                        std::span<const BoundLine> like, const SolveOptions& options,
                                        const RunContext& context);
  /// Within the options' memory limit (> 0), where `known` is achieved elsewhere.
  Expected<Answer> fastest(const Problem& problem, const SolveOptions& options, const RunContext& context);
  /// The exact pass after a solve with Pass::bounds, the last call: of the same problem, with the plans and the bound
  /// that are known of it. Errors: cancelled.
  Expected<Answer> go_on(const SolveOptions& options, const RunContext& context);
  Work work() const;        ///< of the last call of solve(), fastest() or go_on()
  bool has_bounds() const;  ///< whether go_on() may follow
  void forget_bounds();     ///< go_on() will not follow: gives its memory back, and that of the costs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace turnpoint::frontier
