// SPDX-License-Identifier: Apache-2.0
// A device per task, and optionally the order in which each device runs its tasks (resources/manual/formats.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/model/task_graph.h"

namespace turnpoint {

struct Placement {
  std::uint32_t devices = 1;          ///< K; tasks are on devices 0 ... K - 1
  std::vector<std::uint32_t> device;  ///< by task
  /// Empty, or K lists: each device's tasks in the order in which it must run them, every task once.
  std::vector<std::vector<TaskIndex>> order;
  /// By task: the cluster that the method began with, which it mapped as one. Empty: it has none. Decides nothing.
  std::vector<std::uint32_t> cluster;
};

/// Whether the placement can be that of the graph: sizes, ids, each task once in the order of its own device, no more
/// devices than the graph's links and device list know. `where` names the placement's source in messages.
Expected<void> check_placement(const TaskGraph& graph, const Placement& placement, const std::string& where);

/// Whether every co-location group is on one device. Apart from check_placement, since the simulator does not need it.
Expected<void> check_colocation(const TaskGraph& graph, const Placement& placement, const std::string& where);

}  // namespace turnpoint
