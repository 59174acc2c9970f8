// SPDX-License-Identifier: Apache-2.0
// Which tasks of a schedule a table shows, and in which order. Works on any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/simulation/schedule.h"

namespace turnpoint::views {

/// Sessions keep these numbers. `sent`: to other devices, all copies together.
enum class TaskColumn : int { name, kind, scope, device, start, duration, output, persistent, critical, sent, kCount };

struct TaskRowsRequest {
  SchedulePtr schedule;
  std::string words;  ///< UTF-8; tasks whose name, scope or kind hold every one of them, whatever their case
  TaskColumn sorted_by = TaskColumn::start;
  bool descending = false;
  bool without_time = false;  ///< also tasks that take none: waits, views, inputs
};

/// Immutable once made.
struct TaskRows {
  TaskRowsRequest request;
  std::vector<TaskIndex> tasks;          ///< by row
  std::vector<std::uint32_t> row_of;     ///< by task; kNone: filtered out
  std::vector<bool> critical;            ///< by task: on the path that decides the makespan
  std::vector<std::int64_t> sent_bytes;  ///< by task: what it sends other devices, once for each of them
  /// The most that one device sends to one other, and who: peak communication. 0: nobody sends anything.
  std::int64_t peak_communication_bytes = 0;
  std::uint32_t peak_from = 0, peak_to = 0;
  double longest_s = 0;  ///< duration of the longest task, shown or not
  double shown_s = 0;    ///< sum of the rows' durations
};
using TaskRowsPtr = std::shared_ptr<const TaskRows>;

TaskRowsPtr make_task_rows(TaskRowsRequest request);

/// Seconds at which the task begins and for how long it runs; 0 where it runs nowhere.
double task_start_s(const Schedule& schedule, TaskIndex task);
double task_duration_s(const Schedule& schedule, TaskIndex task);

}  // namespace turnpoint::views
