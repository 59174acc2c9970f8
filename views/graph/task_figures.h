// SPDX-License-Identifier: Apache-2.0
// What a placement says about a task hierarchy, summed once: what crosses devices between which boxes, how busy devices
// are, where the critical path runs. Made on another thread, immutable afterwards.
#pragma once

#include <memory>
#include <vector>

#include "core/model/task_hierarchy.h"
#include "core/simulation/schedule.h"
#include "views/graph/device_palette.h"

namespace turnpoint::views {

struct TaskFigures {
  TaskHierarchyPtr hierarchy;
  SchedulePtr schedule;  ///< null: nothing is placed
  /// Edges are weighed in seconds: the graph states times of transfers and no bytes.
  bool edges_in_seconds = false;

  std::vector<double> cut;  ///< by edge of the hierarchy, in its weight; empty: nothing is placed
  double cut_total = 0, weight_total = 0;
  std::vector<double> load_s;                  ///< by device: seconds of computing
  std::vector<std::uint32_t> critical_before;  ///< by position in the hierarchy's order, one more; empty: no schedule
  std::vector<double> critical_s;              ///< likewise: seconds of them
  std::vector<bool> critical_edge;             ///< by edge of the hierarchy

  // The layers that colours of scopes mean: children of one group, sixteen at most with neighbours joined.
  std::uint32_t scope_group = 0;
  std::vector<std::uint8_t> scope_slot;  ///< by position; kOtherDevice: outside

  // The clusters that have a colour of their own: those that take longest, sixteen at most.
  std::vector<std::uint32_t> named_clusters;  ///< the longest first
  std::vector<std::uint8_t> cluster_slot;     ///< by position; kOtherDevice: any other. Empty: there are no clusters
  std::uint32_t clusters = 0;

  const TaskGraph& graph() const { return *hierarchy->graph; }
  std::uint32_t device_of(TaskIndex task) const { return schedule ? schedule->device_of[task] : kNone; }
  double weight(const TaskHierarchy::Edge& edge) const {
    return edges_in_seconds ? edge.seconds : double(edge.bytes());
  }
  /// Tasks of the critical path in a stretch of the order.
  std::uint32_t critical_tasks(std::uint32_t begin, std::uint32_t end) const {
    return critical_before.empty() ? 0 : critical_before[end] - critical_before[begin];
  }
};
using TaskFiguresPtr = std::shared_ptr<const TaskFigures>;

/// `schedule` may be null; else it is of the hierarchy's graph.
TaskFiguresPtr make_task_figures(TaskHierarchyPtr hierarchy, SchedulePtr schedule);

/// "12 MiB", or "1.3 ms" where edges are weighed in seconds.
QString edge_weight_text(const TaskFigures& figures, double weight);
/// The same in the unit that suits `largest`, for figures that stand side by side.
QString edge_weight_beside(const TaskFigures& figures, double weight, double largest);
/// Output, persistent and workspace bytes.
std::int64_t task_bytes(const TaskGraph& graph, TaskIndex task);

}  // namespace turnpoint::views
