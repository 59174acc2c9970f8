// SPDX-License-Identifier: Apache-2.0
// What a placement method answers for one point: the task graph it placed, a device per task
// (resources/manual/formats.md) and what the simulator says of it. The data beside core/plan/plan.h's sharding plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"
#include "core/model/task_role.h"
#include "core/model/training_graph_options.h"

namespace turnpoint {

/// The first instant at which a device lacks memory.
struct PlacementShortage {
  std::uint32_t device = 0;
  double time_s = 0;
  std::int64_t bytes = 0;  ///< most that is missing on this device at any instant
};

/// What a stage of the method brought: the makespan that the simulator measures at its end.
struct PlacementStage {
  std::string name;
  double makespan_s = 0;
};

/// A placement with an order per device, and what the simulator says of it.
struct SimulatedPlacement {
  std::string method;
  Placement placement;
  double makespan_s = 0, max_load_s = 0;
  std::vector<double> busy_s;            ///< by device, computing
  std::vector<std::int64_t> peak_bytes;  ///< by device, whatever the objective (resources/manual/simulator.md, rule 4)
  /// By device, without what comes and goes: what the search itself keeps to the limit where it goes by the busiest
  /// device, as the study counts; where it goes by the makespan it keeps the peaks to it.
  std::vector<std::int64_t> persistent_bytes;
  std::int64_t peak_communication_bytes = 0;  ///< most that one device sends to one other
  std::optional<PlacementShortage> shortage;  ///< of a peak; absent where everything fits
  std::size_t moved_tasks = 0;                ///< that the memory stage put elsewhere
  std::vector<PlacementStage> stages;
  std::string origin;  ///< whose placement it began as, where a method tries several; empty: its own
  double search_s = 0;
  /// What the search met besides: of these and this none needs at most as much memory as another (on the device that
  /// needs most) and ends as early. With their orders.
  std::vector<Placement> others;

  bool fits() const { return !shortage.has_value(); }
};

struct PlacementPlan : SimulatedPlacement {
  TaskGraphPtr graph;
  std::vector<OperatorId> operator_of;    ///< by task; empty where the graph was not made of a Model
  std::vector<TaskRole> role;             ///< likewise
  TrainingGraphOptions made_with;         ///< where it was made of a Model; its micro-batches are parts of the batch
  double one_device_s = 0;                ///< everything on the fastest single device, one task after another
  std::vector<std::int64_t> limit_bytes;  ///< by device; kUnlimitedBytes: none

  bool limited() const;                  ///< some device has a limit
  std::uint32_t busiest_device() const;  ///< lowest index on ties
};
using PlacementPlanPtr = std::shared_ptr<const PlacementPlan>;

/// "device 3 lacks 1.2 GiB at 731 ms".
std::string describe(const PlacementShortage& shortage);

}  // namespace turnpoint
