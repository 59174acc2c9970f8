// SPDX-License-Identifier: Apache-2.0
// The schedule of the picked point: simulated on a worker, newest wins, handed to all views at once with what they
// draw it from.
#pragma once

#include <QObject>
#include <QTimer>
#include <memory>
#include <set>

#include "core/plan/plan.h"
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
  /// Whether somebody wants to know a number of it once picks and sliders rest; it is then made although no view shows
  /// it.
  void set_wanted_at_rest(bool on);
  bool up_to_date() const;
  /// What is loaded belongs to this plan.
  bool is_of(const std::shared_ptr<const Plan>& plan) const { return plan && loaded_.schedule && shown_ == plan; }

 signals:
  void changed();

 private:
  static constexpr int kRest_ms = 250;
  void load();
  void start();
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
  bool wanted_at_rest_ = false;
  QTimer rest_;
};

}  // namespace turnpoint::app
