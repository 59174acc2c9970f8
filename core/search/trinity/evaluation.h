// SPDX-License-Identifier: Apache-2.0
// Devices per task become a schedule and its figures. The one place where learning meets the simulator.
#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/progress.h"
#include "core/search/annealing/walk.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/list_schedule.h"
#include "core/simulation/ranked.h"

namespace turnpoint::trinity {

struct Evaluated {
  Placement placement;  ///< with order
  placement::Verdict verdict;
  std::int64_t peak_communication = 0;  ///< bytes, from one device to one other
  std::int64_t peak_memory = 0;         ///< bytes, of the fullest device
  double seconds = 0;                   ///< of the request's objective

  bool fits() const { return !verdict.shortage; }
  annealing::Score score() const { return {verdict.missing_bytes, seconds}; }
};

class Evaluation {
 public:
  /// `workers`: as many threads as evaluate at once. Graph and request outlive it.
  Evaluation(const TaskGraph& graph, const placement::PlacementRequest& request, int workers);

  /// Whenever a device is idle it runs, of what is ready, what is furthest from the end by the transfers that these
  /// devices make, or what has the priority set below.
  Expected<Evaluated> of_devices(const std::vector<std::uint32_t>& device, int worker);
  /// With the order that it has.
  Expected<Evaluated> of_placement(Placement placement, int worker);
  /// What annealing makes of a placement with so many calls: single units and tasks go elsewhere or get another rank,
  /// which pieces cannot follow. Never worse, also where it is stopped. Not beside evaluations.
  Expected<Evaluated> refined(Evaluated from, std::uint64_t calls, std::uint64_t seed, const RunContext& context);
  /// Tasks go by when they start in `placement`, if that makes its devices' schedule faster than the distance from the
  /// end does. Not beside evaluations.
  Expected<void> go_by(const Placement& placement);
  /// By task; empty: the distance from the end.
  const std::vector<double>& priority() const { return priority_; }
  void set_priority(std::vector<double> priority) { priority_ = std::move(priority); }
  std::uint64_t calls() const { return calls_; }

 private:
  const placement::PlacementRequest& request_;
  placement::ScheduleCosts costs_;
  std::vector<double> priority_;
  std::vector<std::unique_ptr<placement::Judge>> judges_;
  std::vector<std::unique_ptr<RankedSimulator>> simulators_;
  std::atomic<std::uint64_t> calls_ = 0;
};

}  // namespace turnpoint::trinity
