// SPDX-License-Identifier: Apache-2.0
// Simulated annealing of placements, judged by the simulator.
//
// Temperatures follow from the graph: they begin at a fraction of what changes that lengthen the start cost, which is
// measured, and fall by a constant factor. So nothing here is in seconds or fitted to a network.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/search/annealing/walk.h"

namespace turnpoint::annealing {

/// Ends with whichever comes first. One in calls has the same answer on every machine, one in seconds has not.
struct Budget {
  std::uint64_t calls = std::numeric_limits<std::uint64_t>::max();  ///< measurements of a placement
  double seconds = std::numeric_limits<double>::infinity();         ///< wall time
};

/// How much of a budget is used up, and what of its use is reported.
class Spending {
 public:
  Spending(const Budget& budget, const char* phase, double reported, const RunContext& context);
  /// 0 at the beginning, 1 or more at the end. Reports now and then.
  double part(std::uint64_t calls);

 private:
  const Budget& budget_;
  const char* phase_;
  double reported_;
  const RunContext& context_;
  std::int64_t begin_ns_;
  std::uint64_t next_report_ = 0;
};

/// From the best of `starts`, which the walk measures first, until the budget is spent or the user stops it; the walk
/// keeps the best of all. Progress is reported from `reported` up to 1. Error: cancelled, before anything is measured.
Expected<void> anneal(Walk& walk, const std::vector<Placement>& starts, std::uint64_t seed, const Budget& budget,
                      double reported, const RunContext& context);

}  // namespace turnpoint::annealing
