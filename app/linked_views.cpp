// SPDX-License-Identifier: Apache-2.0
#include "app/linked_views.h"

#include <QWidget>

#include "app/graph_tab.h"
#include "app/parallelism_page.h"
#include "views/common/configuration_colors.h"
#include "views/common/selection_model.h"
#include "views/comparison/comparison_view.h"
#include "views/hardware/hardware_view.h"
#include "views/memory/memory_view.h"
#include "views/notes/notes_view.h"
#include "views/parallelism/parallelism_view.h"
#include "views/plan_table/plan_table_view.h"
#include "views/task_table/task_table_view.h"
#include "views/timeline/timeline_view.h"
#include "views/validation/validation_view.h"

namespace turnpoint::app {

namespace {

/// A tab that gets what it shows by itself, not from the picked plan; `keeper` remembers its state.
template <class View, class Keeper>
LinkedView tab_of_its_own(const char* key, const QString& title, View* view, Keeper* keeper) {
  return {QString::fromLatin1(key),
          title,
          view,
          [](const ScenarioPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [keeper] { return keeper->save_state(); },
          [keeper](const QJsonObject& state) { keeper->restore_state(state); },
          view->tool_bar()};
}

LinkedView graph_view(GraphTab* tab) {
  return {QStringLiteral("graph"),
          QObject::tr("Graph"),
          tab,
          [tab](const ScenarioPtr& scenario) {
            tab->set_model(scenario ? scenario->model : nullptr, scenario ? scenario->tasks : nullptr);
          },
          [tab](std::shared_ptr<const Plan> plan, ScenarioPtr scenario) {
            tab->set_plan(std::move(plan), std::move(scenario));
          },
          [tab] { return tab->save_state(); },
          [tab](const QJsonObject& state) { tab->restore_state(state); },
          tab->tool_bar()};
}

LinkedView table_view(QWidget* parent, views::SelectionModel* selection,
                      std::shared_ptr<views::ConfigurationColors> colors) {
  auto* view = new views::PlanTableView(parent);
  view->set_selection(selection);
  view->share_colors(std::move(colors));
  return {QStringLiteral("plan_table"),
          QObject::tr("Plan table"),
          view,
          [view](const ScenarioPtr& scenario) {
            const bool tasks = scenario && scenario->tasks;
            view->set_empty_text(tasks ? QObject::tr("A task graph has no operators; its tasks stand in the tab Tasks.")
                                       : QObject::tr("Open a model to see its plan."));
            view->set_model(tasks || !scenario ? nullptr : scenario->model);
          },
          [view](std::shared_ptr<const Plan> plan, ScenarioPtr scenario) {
            if (!scenario || !scenario->tasks) view->set_plan(std::move(plan), std::move(scenario));
          },
          [view] { return view->save_state(); },
          [view](const QJsonObject& state) { view->restore_state(state); },
          view->tool_bar()};
}

}  // namespace

LinkedTabs make_linked_views(QWidget* parent, views::SelectionModel* selection) {
  LinkedTabs tabs;
  // A configuration has one colour, whichever view shows it.
  const auto colors = std::make_shared<views::ConfigurationColors>();
  tabs.graph = new GraphTab(selection, colors, parent);
  tabs.timeline = new views::TimelineView(parent);
  tabs.timeline->set_selection(selection);
  tabs.memory = new views::MemoryView(parent);
  tabs.memory->set_selection(selection);
  tabs.list.push_back(graph_view(tabs.graph));
  tabs.list.push_back(tab_of_its_own("timeline", QObject::tr("Timeline"), tabs.timeline, tabs.timeline));
  tabs.list.push_back(tab_of_its_own("memory", QObject::tr("Memory"), tabs.memory, tabs.memory));
  auto* tasks = new views::TaskTableView(parent);
  tasks->set_selection(selection);
  tabs.list.push_back(tab_of_its_own("task_table", QObject::tr("Tasks"), tasks, tasks));
  tabs.list.push_back(table_view(parent, selection, colors));
  return tabs;
}

LinkedView make_hardware_tab(views::HardwareView* view) {
  return tab_of_its_own("hardware", QObject::tr("Hardware"), view, view);
}

LinkedView make_comparison_tab(views::ComparisonView* view) {
  return tab_of_its_own("comparison", QObject::tr("Methods"), view, view);
}

LinkedView make_notes_tab(views::NotesView* view) {
  return {QStringLiteral("notes"),
          QObject::tr("Notes"),
          view,
          [](const ScenarioPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [] { return QJsonObject(); },
          [](const QJsonObject&) {},
          view->tool_bar()};
}

LinkedView make_validation_tab(views::ValidationView* view) {
  LinkedView tab = tab_of_its_own("validation", QObject::tr("Validation"), view, view);
  tab.set_model = [view](const ScenarioPtr& scenario) { view->set_model(scenario ? scenario->model : nullptr); };
  return tab;
}

LinkedView make_parallelism_tab(views::ParallelismView* view, ParallelismPage* page) {
  return tab_of_its_own("parallelism", QObject::tr("Parallelism"), view, page);
}

}  // namespace turnpoint::app
