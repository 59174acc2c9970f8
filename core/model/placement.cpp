// SPDX-License-Identifier: Apache-2.0
#include "core/model/placement.h"

#include <fmt/format.h>

namespace turnpoint {

Expected<void> check_placement(const TaskGraph& graph, const Placement& placement, const std::string& where) {
  const std::size_t tasks = graph.task_count();
  if (placement.devices < 1 || placement.devices > TaskGraphBuilder::kMaxDevices)
    return bad_input(fmt::format("a placement on {} devices", placement.devices), where);
  if (placement.devices > graph.device_limit())
    return bad_input(fmt::format("the placement uses {} devices, the task graph describes {}", placement.devices,
                                 graph.device_limit()),
                     where);
  if (placement.device.size() != tasks)
    return bad_input(fmt::format("the placement has {} tasks, the task graph has {}", placement.device.size(), tasks),
                     where);
  for (TaskIndex t = 0; t < tasks; ++t)
    if (placement.device[t] >= placement.devices)
      return bad_input(
          fmt::format("{} is on device {} of {}", graph.describe(t), placement.device[t], placement.devices), where);
  if (!placement.cluster.empty() && placement.cluster.size() != tasks)
    return bad_input(fmt::format("the placement has clusters of {} tasks, the task graph has {}",
                                 placement.cluster.size(), tasks),
                     where);
  if (placement.order.empty()) return {};
  if (placement.order.size() != placement.devices)
    return bad_input(
        fmt::format("order lists {} devices, the placement has {}", placement.order.size(), placement.devices), where);
  std::vector<bool> listed(tasks, false);
  std::size_t count = 0;
  for (std::uint32_t d = 0; d < placement.devices; ++d)
    for (const TaskIndex t : placement.order[d]) {
      if (t >= tasks) return bad_input(fmt::format("order of device {} names task {} of {}", d, t, tasks), where);
      if (placement.device[t] != d)
        return bad_input(fmt::format("order of device {} names {}, which is on device {}", d, graph.describe(t),
                                     placement.device[t]),
                         where);
      if (listed[t]) return bad_input(fmt::format("order of device {} names {} twice", d, graph.describe(t)), where);
      listed[t] = true;
      ++count;
    }
  if (count == tasks) return {};
  TaskIndex missing = 0;
  while (listed[missing]) ++missing;
  return bad_input(fmt::format("order leaves out {}", graph.describe(missing)), where);
}

Expected<void> check_colocation(const TaskGraph& graph, const Placement& placement, const std::string& where) {
  std::vector<TaskIndex> first(graph.groups.size(), kNone);
  for (TaskIndex t = 0; t < graph.task_count(); ++t) {
    if (graph.colocate[t] == kNone) continue;
    TaskIndex& other = first[graph.colocate[t]];
    if (other == kNone) other = t;
    if (placement.device[other] != placement.device[t])
      return bad_input(
          fmt::format("{} and {} belong together (group '{}') but are on devices {} and {}", graph.describe(other),
                      graph.describe(t), graph.groups[graph.colocate[t]], placement.device[other], placement.device[t]),
          where);
  }
  return {};
}

}  // namespace turnpoint
