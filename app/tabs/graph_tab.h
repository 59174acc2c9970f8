// SPDX-License-Identifier: Apache-2.0
// The Graph tab: a Model's operators under a sharding plan, or a task graph under a placement; one page at a time, the
// tool bar beside it that of the page on show.
#pragma once

#include "app/tab.h"
#include "views/explain/explained.h"

class QStackedWidget;

namespace turnpoint::views {
class GraphView;
class TaskGraphView;
}  // namespace turnpoint::views

namespace turnpoint::app {

class GraphTab : public Tab {
  Q_OBJECT
 public:
  explicit GraphTab(const TabParts& parts);

  views::GraphView* operators() const { return operators_; }
  views::TaskGraphView* tasks() const { return tasks_; }
  bool shows_tasks() const;

 protected:
  /// A model, or the model that stands for the scenario's tasks.
  void set_model(const ScenarioPtr& scenario) override;
  /// A plan raises the operators' page.
  void set_plan(const std::shared_ptr<const Plan>& plan, const ScenarioPtr& scenario) override;
  QJsonObject save_state() const override;
  void restore_state(const QJsonObject& state) override;
  QSize picture_size() const override;  ///< the graph is exported whole
  void paint_picture(QPainter& painter, QSize size) override;

 private:
  void raise(bool tasks);

  views::GraphView* operators_;
  views::TaskGraphView* tasks_;
  QStackedWidget* pages_;
  views::ExplainedPtr explained_;  ///< whose difference the graph offers to show
  TaskGraphPtr opened_;  ///< the task graph that is open as it is
};

}  // namespace turnpoint::app
