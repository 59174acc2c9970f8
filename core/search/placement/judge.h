// SPDX-License-Identifier: Apache-2.0
// What a placement is worth: the one measure by which methods compare candidates, and by which results are reported.
#pragma once

#include "core/search/placement/placement_method.h"
#include "core/simulation/simulator.h"

namespace turnpoint::placement {

struct Verdict {
  double makespan_s = 0;
  double max_load_s = 0;  ///< for the objective max-load only
  std::vector<std::int64_t> peak_bytes;
  std::optional<PlacementShortage> shortage;  ///< of the device that lacks most; its instant is that device's peak
  std::int64_t missing_bytes = 0;             ///< sum over devices

  double objective_s(Objective objective) const { return objective == Objective::makespan ? makespan_s : max_load_s; }
  /// Whether this is preferred: what fits before what does not, then the objective, then less missing memory.
  bool better_than(const Verdict& other, Objective objective) const;
};

/// Keeps the simulator's memory between measurements. Not thread-safe.
class Judge {
 public:
  Judge(const TaskGraph& graph, const PlacementRequest& request) : graph_(graph), request_(request) {}
  /// Co-location and order are checked.
  Expected<Verdict> measure(const Placement& placement);
  /// What was measured last.
  const Simulation& simulation() const { return simulation_; }
  /// Gives the placement measured last the order in which its tasks ran.
  void keep_order(Placement& placement) const;
  /// Simulates once more, with memory over time, for the first instant at which anything is missing.
  Expected<PlacementShortage> locate_shortage(const Placement& placement);
  /// Simulates with memory over time, kept in simulation().
  Expected<Verdict> measure_memory(const Placement& placement);

 private:
  Expected<Verdict> measure(const Placement& placement, bool memory);
  std::int64_t used(std::uint32_t device) const;
  void tell(const Placement& placement) const;

  const TaskGraph& graph_;
  const PlacementRequest& request_;
  Simulator simulator_;
  Simulation simulation_;
};

}  // namespace turnpoint::placement
