// SPDX-License-Identifier: Apache-2.0
// The schedule of the picked point: simulated on a worker, newest wins, handed to all views at once with what they
// draw it from.
#pragma once

#include <QObject>
#include <memory>
#include <set>

#include "core/simulation/schedule.h"

namespace turnpoint::views {
class MemorySummary;
class SelectionModel;
class TimelineSummary;
}  // namespace turnpoint::views

namespace turnpoint::app {

class PlanLoader;
class TaskManager;

/// Everything of one schedule that may be made away from the interface thread.
struct LoadedSchedule {
  SchedulePtr schedule;
  std::shared_ptr<const views::TimelineSummary> timeline;
  std::shared_ptr<const views::MemorySummary> memory;
  bool of_placement = false;
};

class ScheduleLoader : public QObject {
  Q_OBJECT
 public:
  ScheduleLoader(PlanLoader& plans, TaskManager& tasks, views::SelectionModel& selection, QObject* parent = nullptr);

  /// Empty schedule: none, `message` says why.
  const LoadedSchedule& loaded() const { return loaded_; }
  const QString& message() const { return message_; }
  /// Whether this view, which draws schedules of sharding plans, can be seen; while none can, they are not made. The
  /// graph colours tasks by their device, so a placement's schedule always is.
  void set_looked_at(const QObject* view, bool on);
  bool up_to_date() const;

 signals:
  void changed();

 private:
  void load();
  void clear(const QString& message);

  PlanLoader& plans_;
  TaskManager& tasks_;
  views::SelectionModel& selection_;
  LoadedSchedule loaded_;
  QString message_;
  // Held, so that no later plan can come to lie at the same address and pass for this one.
  std::shared_ptr<const void> asked_;  ///< plan or placement that was asked for last
  std::shared_ptr<const void> shown_;  ///< that loaded_ belongs to
  std::set<const QObject*> seen_;
};

}  // namespace turnpoint::app
