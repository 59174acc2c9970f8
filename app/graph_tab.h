// SPDX-License-Identifier: Apache-2.0
// The Graph tab: a Model's operators under a sharding plan, or a task graph under a placement; one page at a time, the
// tool bar beside it that of the page on show.
#pragma once

#include <QJsonObject>
#include <QWidget>
#include <memory>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "core/simulation/schedule.h"

class QStackedWidget;

namespace turnpoint::views {
class ConfigurationColors;
class GraphView;
class SelectionModel;
class TaskGraphView;
}  // namespace turnpoint::views

namespace turnpoint::app {

class GraphTab : public QWidget {
  Q_OBJECT
 public:
  GraphTab(views::SelectionModel* selection, std::shared_ptr<views::ConfigurationColors> colors,
           QWidget* parent = nullptr);

  /// A model, or the model that stands for `tasks`.
  void set_model(ModelPtr model, TaskGraphPtr tasks);
  /// A plan raises the operators' page.
  void set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario);
  /// A placement's schedule raises the tasks' page.
  void set_placement_schedule(SchedulePtr schedule);
  /// Before its schedule is there.
  void expect_placement();

  QJsonObject save_state() const;
  void restore_state(const QJsonObject& state);
  QWidget* tool_bar() const { return tool_bar_; }
  views::GraphView* operators() const { return operators_; }
  views::TaskGraphView* tasks() const { return tasks_; }
  bool shows_tasks() const;

 private:
  void raise(bool tasks);

  views::GraphView* operators_;
  views::TaskGraphView* tasks_;
  QStackedWidget* pages_;
  QWidget* tool_bar_;
  TaskGraphPtr opened_;  ///< the task graph that is open as it is
};

}  // namespace turnpoint::app
