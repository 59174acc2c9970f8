// SPDX-License-Identifier: Apache-2.0
#include "app/graph_tab.h"

#include <QHBoxLayout>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "views/graph/graph_view.h"
#include "views/graph/task_graph_view.h"

namespace turnpoint::app {

namespace {
const QString kTasks = QStringLiteral("tasks");
}

GraphTab::GraphTab(views::SelectionModel* selection, std::shared_ptr<views::ConfigurationColors> colors,
                   QWidget* parent)
    : QWidget(parent),
      operators_(new views::GraphView(this)),
      tasks_(new views::TaskGraphView(this)),
      pages_(new QStackedWidget(this)),
      tool_bar_(new QWidget(this)) {
  setObjectName(QStringLiteral("graph_tab"));
  operators_->set_selection(selection);
  operators_->share_colors(std::move(colors));
  tasks_->set_selection(selection);
  auto* bars = new QHBoxLayout(tool_bar_);
  bars->setContentsMargins(0, 0, 0, 0);
  bars->addWidget(operators_->tool_bar());
  bars->addWidget(tasks_->tool_bar());
  pages_->addWidget(operators_);
  pages_->addWidget(tasks_);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(tool_bar_);
  column->addWidget(pages_, 1);
  raise(false);
}

bool GraphTab::shows_tasks() const { return pages_->currentWidget() == tasks_; }

void GraphTab::raise(bool tasks) {
  pages_->setCurrentWidget(tasks ? static_cast<QWidget*>(tasks_) : operators_);
  operators_->tool_bar()->setVisible(!tasks);
  tasks_->tool_bar()->setVisible(tasks);
}

void GraphTab::set_model(ModelPtr model, TaskGraphPtr tasks) {
  opened_ = std::move(tasks);
  tasks_->set_schedule(nullptr);
  tasks_->set_task_graph(opened_);
  operators_->set_model(opened_ ? nullptr : std::move(model));
  raise(opened_ != nullptr);
}

void GraphTab::set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario) {
  if (opened_) return;
  if (plan) raise(false);
  operators_->set_plan(std::move(plan), std::move(scenario));
}

void GraphTab::expect_placement() { raise(true); }

void GraphTab::set_placement_schedule(SchedulePtr schedule) {
  if (schedule) raise(true);
  tasks_->set_schedule(std::move(schedule));
}

QJsonObject GraphTab::save_state() const {
  QJsonObject state = operators_->save_state();
  state[kTasks] = tasks_->save_state();
  return state;
}

void GraphTab::restore_state(const QJsonObject& state) {
  operators_->restore_state(state);
  tasks_->restore_state(state[kTasks].toObject());
}

}  // namespace turnpoint::app
