// SPDX-License-Identifier: Apache-2.0
#include "app/tabs/graph_tab.h"

#include <QHBoxLayout>
#include <QStackedWidget>
#include <QVBoxLayout>

#include "app/actions.h"
#include "core/search/registry.h"
#include "views/graph/graph_canvas.h"
#include "views/graph/graph_view.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_graph_view.h"

namespace turnpoint::app {

namespace {
const QString kTasks = QStringLiteral("tasks");
}

GraphTab::GraphTab(const TabParts& parts)
    : Tab(parts, "graph", tr("Graph"), new QWidget(parts.window), new QWidget(parts.window)),
      operators_(new views::GraphView(widget)),
      tasks_(new views::TaskGraphView(widget)),
      pages_(new QStackedWidget(widget)) {
  widget->setObjectName(QStringLiteral("graph_tab"));
  operators_->set_selection(parts.selection());
  operators_->share_colors(parts.colors);
  tasks_->set_selection(parts.selection());
  auto* bars = new QHBoxLayout(tool_bar);
  bars->setContentsMargins(0, 0, 0, 0);
  bars->addWidget(operators_->tool_bar());
  bars->addWidget(tasks_->tool_bar());
  pages_->addWidget(operators_);
  pages_->addWidget(tasks_);
  auto* column = new QVBoxLayout(widget);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(pages_, 1);
  raise(false);
  connect(&work_.loader, &PlanLoader::plan_changed, this, [this] {
    const auto& plan = work_.loader.picked_plan();
    const bool placed = plan && kind_of(*plan) == PlanKind::placement;
    if (placed && work_.plan_is_of_model()) raise(true);  // before its schedule is there
  });
  connect(&work_.schedules, &ScheduleLoader::changed, this, [this] {
    const LoadedSchedule& loaded = work_.schedules.loaded();
    const bool placed = loaded.of_placement && loaded.schedule;
    if (placed) raise(true);
    tasks_->set_schedule(placed ? loaded.schedule : nullptr);
  });
  connect(&work_.explainer, &Explainer::changed, this, [this] {
    operators_->canvas()->set_askable(bool(work_.explainer.plan()), work_.explainer.has_choices());
    const views::ExplainedPtr answer = work_.explainer.answer();
    const bool differs = answer && answer->difference;
    if (answer == explained_) return;
    explained_ = answer;
    operators_->set_difference(differs ? views::marks_of(*answer->difference, *answer->model) : nullptr);
  });
  connect(&work_.explainer, &Explainer::graph_wanted, this, [this] {
    raise(false);
    operators_->show_difference();
    emit raise_requested();
  });
  connect(operators_->canvas(), &views::GraphCanvas::why_requested, &work_.explainer, &Explainer::want);
  const auto allow_exports = [this] {
    for (const ActionId id : {ActionId::export_graph_svg, ActionId::export_graph_png})
      actions_.allow(id, work_.document.scenario() ? QString() : tr("Nothing is open."));
  };
  connect(&work_.document, &Document::scenario_changed, this, allow_exports);
  allow_exports();
  connect(tasks_, &views::TaskGraphView::export_requested, this, &Tab::ask_export_picture);
  on(ActionId::export_graph_svg, [this] { ask_export_picture(QStringLiteral("svg")); });
  on(ActionId::export_graph_png, [this] { ask_export_picture(QStringLiteral("png")); });
}

bool GraphTab::shows_tasks() const { return pages_->currentWidget() == tasks_; }

void GraphTab::raise(bool tasks) {
  pages_->setCurrentWidget(tasks ? static_cast<QWidget*>(tasks_) : operators_);
  operators_->tool_bar()->setVisible(!tasks);
  tasks_->tool_bar()->setVisible(tasks);
}

void GraphTab::set_model(const ScenarioPtr& scenario) {
  opened_ = scenario ? scenario->tasks : nullptr;
  tasks_->set_schedule(nullptr);
  tasks_->set_task_graph(opened_);
  operators_->set_model(opened_ || !scenario ? nullptr : scenario->model);
  raise(opened_ != nullptr);
}

void GraphTab::set_plan(const std::shared_ptr<const Plan>& plan, const ScenarioPtr& scenario) {
  if (opened_) return;
  if (plan) raise(false);
  const auto& picked = work_.loader.picked_plan();
  const RatioPlanPtr* const ratio = plan && picked ? std::get_if<RatioPlanPtr>(&*picked) : nullptr;
  const ResultPtr result = work_.loader.result();
  operators_->set_plan(plan, scenario, ratio ? *ratio : nullptr,
                       result && cuts_by_types(result->method, result->method_options));
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

QSize GraphTab::picture_size() const {
  return shows_tasks() ? tasks_->canvas()->picture_size() : operators_->canvas()->picture_size();
}

void GraphTab::paint_picture(QPainter& painter, QSize size) {
  if (shows_tasks())
    tasks_->paint_to(painter, size);
  else
    operators_->paint_to(painter, size);
}

Tab* graph_tab(const TabParts& parts) { return new GraphTab(parts); }

}  // namespace turnpoint::app
