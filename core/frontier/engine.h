// SPDX-License-Identifier: Apache-2.0
// One run on one factor graph whose elimination is narrow enough: hull, coarse lists, exact lists.
#pragma once

#include <vector>

#include "core/frontier/bounds.h"
#include "core/frontier/lists.h"
#include "core/frontier/solver.h"

namespace turnpoint::frontier::detail {

/// Slopes for a problem of which nothing is known yet: both ends, and a geometric sweep around the ratio of the ranges.
void first_weights(const Dag& dag, std::vector<double>& memory, std::vector<double>& time);

class Engine {
 public:
  Engine(const Graph& graph, const Elimination& plan, ThreadPool& pool, const Control& control, std::int64_t limit)
      : graph_(graph), pool_(pool), control_(control), limit_(limit) {
    build_dag(graph, plan, dag_);
  }
  Engine(const Engine&) = delete;

  /// Lagrangian plans and bounds; `weights` (memory, then time) are slopes that served before, replaced by those used.
  bool hull(Achieved& achieved, std::vector<double>& weights);
  /// Quantised lists, traced back and re-costed.
  void coarse(Achieved& achieved, int buckets);
  /// Exact lists, pruned by what is achieved.
  bool exact(Achieved& achieved);
  /// Exact lists without any bounds, for small problems. False if they grew too large or the run was stopped.
  bool direct(Achieved& achieved);

  bool infeasible() const { return infeasible_; }
  const std::vector<HalfPlane>& half_planes() const { return planes_; }
  const std::vector<LaneBlock>& blocks() const { return blocks_; }
  const Dag& dag() const { return dag_; }

 private:
  bool lanes(const std::vector<double>& memory, const std::vector<double>& time, std::vector<Point>* plans);
  void prune(const Achieved& achieved);
  void collect(const std::vector<ListTable>& lists, Achieved& achieved);
  std::int64_t effective_limit(const Achieved& achieved) const;

  const Graph& graph_;
  ThreadPool& pool_;
  const Control& control_;
  std::int64_t limit_;
  Dag dag_;
  std::vector<LaneBlock> blocks_;
  std::vector<HalfPlane> planes_;
  bool infeasible_ = false;
};

}  // namespace turnpoint::frontier::detail
