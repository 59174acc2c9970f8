// SPDX-License-Identifier: Apache-2.0
// Who does what when, and what it holds meanwhile: what timeline and memory views draw. One form for placements (made
// of a Simulation) and for sharding plans (core/schedule/plan_schedule.h), so that the views know one thing.
//
// A structure of arrays: items lie lane by lane, and in a lane by rising start. Immutable and shared.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

enum class LaneKind : std::uint8_t {
  compute,
  send,           ///< transfers to other devices; may overlap where nothing contends
  communication,  ///< collectives that the device takes part in, inside its node
  network,        ///< those between nodes, and the way to the host
};
const char* to_string(LaneKind kind);

struct Schedule {
  struct Lane {
    std::uint32_t device = 0;
    LaneKind kind = LaneKind::compute;
    std::uint32_t begin = 0, end = 0;  ///< its items
    double busy_s = 0;                 ///< sum of their durations
  };
  struct Device {
    std::string name;  ///< "device 3", or the role "devices 0-15", "stage 2"
    std::int64_t persistent_bytes = 0;
    std::int64_t peak_bytes = 0;
    double peak_at_s = 0;  ///< the first instant of the peak
    std::int64_t memory_limit = kUnlimitedBytes;
    std::uint32_t stands_for = 1;  ///< devices that play the same role, this one included
  };

  double makespan_s = 0;
  std::vector<Lane> lanes;  ///< by device; compute before the others
  std::vector<Device> devices;
  std::vector<std::vector<MemorySample>> memory;  ///< per device by rising time, first sample at 0

  // Items.
  std::vector<double> start_s, end_s;
  std::vector<TaskIndex> task;          ///< what runs; of a transfer its source
  std::vector<std::uint32_t> peer;      ///< receiving device of a transfer; kNone: not a transfer
  std::vector<std::int64_t> bytes;      ///< that a transfer or collective moves; 0 for computing
  std::vector<std::uint32_t> critical;  ///< items of a path that decides the makespan, in time

  /// Names, kinds, scopes and edges of the tasks.
  TaskGraphPtr graph;
  std::vector<std::uint32_t> device_of;   ///< by task
  std::vector<std::uint32_t> cluster_of;  ///< by task, as Placement::cluster; empty: there are none
  std::vector<std::uint32_t> item_of;     ///< by task: its own item; kNone where it runs nowhere
  std::vector<OperatorId> operator_of;    ///< by task: whose forward, backward or update it is; empty: no Model

  std::size_t item_count() const { return start_s.size(); }
  bool is_transfer(std::uint32_t item) const { return peer[item] != kNone; }
  OperatorId operator_of_task(TaskIndex t) const { return operator_of.empty() ? OperatorId() : operator_of[t]; }
  /// All bytes of a device from the sample's instant on.
  std::int64_t total_at(std::uint32_t device, const MemorySample& sample) const {
    return devices[device].persistent_bytes + sample.activation_bytes + sample.copy_bytes + sample.workspace_bytes;
  }
};
using SchedulePtr = std::shared_ptr<const Schedule>;

/// The schedule of a simulated placement. `simulation` must have recorded memory over time if the schedule is to show
/// it. `memory_limit` is per device, beside the graph's own.
SchedulePtr make_schedule(TaskGraphPtr graph, const Placement& placement, const Simulation& simulation,
                          std::int64_t memory_limit = kUnlimitedBytes, std::vector<OperatorId> operator_of = {});

}  // namespace turnpoint
