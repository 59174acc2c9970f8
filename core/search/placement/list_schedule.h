// SPDX-License-Identifier: Apache-2.0
// List scheduling of a task graph on devices: priorities (bottom levels) and one pass over the tasks in an order that
// puts producers first, each task going where it ends earliest or where it is told to go. HEFT is one such pass; the
// other methods build their schedules from the same pieces.
//
// The pass knows the devices' clocks, transfers and (roughly) busy senders. What a schedule is worth is said by the
// simulator alone, never by the times that this file estimates.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"

namespace turnpoint::placement {

/// What the passes over one graph share: seconds of every edge's transfer, with the mean over device pairs where links
/// differ, and each task's place in the topological order.
class ScheduleCosts {
 public:
  ScheduleCosts(const TaskGraph& graph, std::uint32_t devices);

  const TaskGraph& graph() const { return *graph_; }
  std::uint32_t devices() const { return devices_; }
  bool uniform_links() const { return uniform_; }
  double edge_s(EdgeIndex edge) const { return edge_s_[edge]; }
  double edge_s(EdgeIndex edge, std::uint32_t from, std::uint32_t to) const {
    return uniform_ ? edge_s_[edge] : graph_->transfer_s(edge, from, to);
  }
  double task_s(TaskIndex task) const { return task_s_[task]; }  ///< mean over the devices
  double task_s(TaskIndex task, std::uint32_t device) const { return graph_->time_s[task] / graph_->speed_of(device); }
  std::uint32_t topological_place(TaskIndex task) const { return place_[task]; }
  double total_task_s() const { return total_task_s_; }

 private:
  const TaskGraph* graph_;
  std::uint32_t devices_;
  bool uniform_;
  std::vector<double> edge_s_, task_s_;
  std::vector<std::uint32_t> place_;
  double total_task_s_ = 0;
};

/// Longest way from a task's start to the end of the graph. A transfer counts `transfer_weight` of its time, nothing
/// where `device` (by task, may be null) says that both ends share one.
std::vector<double> bottom_levels(const ScheduleCosts& costs, double transfer_weight,
                                  const std::vector<std::uint32_t>* device = nullptr);
/// Longest way from the start of the graph to a task's start, likewise.
std::vector<double> top_levels(const ScheduleCosts& costs, double transfer_weight,
                               const std::vector<std::uint32_t>* device = nullptr);

/// All tasks by falling priority; among equals, and so always where a consumer's priority is not above its producers',
/// producers come first.
std::vector<TaskIndex> order_by_priority(const ScheduleCosts& costs, const std::vector<double>& priority);

struct ListOptions {
  /// A device costs its end time plus this much per second of transfers that the choice makes.
  double affinity = 0;
  bool insertion = false;  ///< fills gaps left earlier
  /// Device per task that is obeyed; null: chosen. Entries kNone are chosen.
  const std::vector<std::uint32_t>* fixed = nullptr;
  /// Tasks without time and inputs (weights) wait for the first task that reads them and go to its device, or where
  /// their group is, and begin at once; what they send is sent before everything else. Else they are tasks like any
  /// other: of those that end nowhere earlier, device 0's.
  bool sources_follow = false;
  /// Persistent bytes that a device can take; null: any. Where no device has room, the emptiest takes the task.
  const std::vector<std::int64_t>* room = nullptr;
};

struct Schedule {
  Placement placement;  ///< with order
  std::vector<double> start_s, end_s;
  double makespan_s = 0;  ///< as estimated
};

/// One pass; `order` puts producers first. Tasks of a co-location group follow the first of them. Returns an empty
/// placement if it was cancelled.
Schedule list_schedule(const ScheduleCosts& costs, const std::vector<TaskIndex>& order, const ListOptions& options,
                       const RunContext& context);

/// Devices run, whenever they are idle, the ready task of the highest priority. Every task has its device.
Schedule ready_schedule(const ScheduleCosts& costs, const std::vector<std::uint32_t>& device,
                        const std::vector<double>& priority, const RunContext& context);

/// Order per device by when tasks start, then by when they end (what takes no time goes before what starts with it),
/// then producers first.
void order_by_start(const ScheduleCosts& costs, const std::vector<double>& start_s, const std::vector<double>& end_s,
                    Placement& placement);

}  // namespace turnpoint::placement
