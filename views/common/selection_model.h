// SPDX-License-Identifier: Apache-2.0
// The one selection that every view reads and writes (resources/manual/window.md): picked point, operators, tasks,
// device, range of time; hover apart. Tasks are those of the schedule on show; operators and tasks are kept in step by
// whoever knows the schedule (follow_schedule).
#pragma once

#include <QObject>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/base/ids.h"
#include "core/simulation/schedule.h"

namespace turnpoint::views {

/// A point of one drawn result: the method's name and the index into its points.
struct PickedPoint {
  std::string method;
  std::size_t index = 0;
  friend bool operator==(const PickedPoint&, const PickedPoint&) = default;
};

/// Setters emit only on change. All views hold a pointer; the document owns it. Lives on the interface thread.
class SelectionModel : public QObject {
  Q_OBJECT
 public:
  using QObject::QObject;

  const std::optional<PickedPoint>& point() const { return point_; }
  const std::set<OperatorId>& operators() const { return operators_; }
  const std::optional<PickedPoint>& hovered_point() const { return hovered_point_; }
  OperatorId hovered_operator() const { return hovered_operator_; }

  const std::set<TaskIndex>& tasks() const { return tasks_; }
  TaskIndex hovered_task() const { return hovered_task_; }  ///< kNone: none
  std::uint32_t device() const { return device_; }  ///< picked device, an index into the schedule's; kNone: none
  /// Picked stretch of time, seconds of the schedule on show; both views of it keep it in sight.
  const std::optional<std::pair<double, double>>& time_range() const { return time_range_; }
  /// The instant under the pointer, seconds of the schedule on show: one cursor in every view of time.
  const std::optional<double>& hovered_time() const { return hovered_time_; }

  /// The schedule whose tasks are meant from now on; null: none. Forgets device, time range and the tasks of
  /// another task graph. While there is one with operators, picking tasks picks their operators and the other way round, and likewise hovering.
  void follow_schedule(SchedulePtr schedule);
  const SchedulePtr& schedule() const { return schedule_; }

  void pick_point(std::optional<PickedPoint> point);
  void pick_operators(std::set<OperatorId> operators);
  void toggle_operator(OperatorId op);
  void hover_point(std::optional<PickedPoint> point);
  void hover_operator(OperatorId op);
  void pick_tasks(std::set<TaskIndex> tasks);
  void toggle_task(TaskIndex task);
  void hover_task(TaskIndex task);
  void pick_device(std::uint32_t device);
  void pick_time_range(std::optional<std::pair<double, double>> range);
  void hover_time(std::optional<double> instant);

 signals:
  void point_changed();
  void point_picked_again();  ///< the one that was picked already
  void operators_changed();
  void hovered_point_changed();
  void hovered_operator_changed();
  void schedule_changed();
  void tasks_changed();
  void hovered_task_changed();
  void device_changed();
  void time_range_changed();
  void hovered_time_changed();

 private:
  std::set<TaskIndex> tasks_of(const std::set<OperatorId>& operators) const;
  std::set<OperatorId> operators_of(const std::set<TaskIndex>& tasks) const;
  void set_operators(std::set<OperatorId> operators);
  void set_tasks(std::set<TaskIndex> tasks);
  void set_hovered_operator(OperatorId op);
  void set_hovered_task(TaskIndex task);

  std::optional<PickedPoint> point_, hovered_point_;
  std::set<OperatorId> operators_;
  OperatorId hovered_operator_;
  SchedulePtr schedule_;
  std::vector<std::vector<TaskIndex>> tasks_by_operator_;  ///< of schedule_; empty where it knows no operators
  std::set<TaskIndex> tasks_;
  TaskIndex hovered_task_ = kNone;
  std::uint32_t device_ = kNone;
  std::optional<std::pair<double, double>> time_range_;
  std::optional<double> hovered_time_;
};

}  // namespace turnpoint::views
