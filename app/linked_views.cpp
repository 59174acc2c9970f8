// SPDX-License-Identifier: Apache-2.0
#include "app/linked_views.h"

#include <QWidget>

#include "app/parallelism_page.h"
#include "views/common/configuration_colors.h"
#include "views/common/selection_model.h"
#include "views/comparison/comparison_view.h"
#include "views/graph/graph_view.h"
#include "views/hardware/hardware_view.h"
#include "views/notes/notes_view.h"
#include "views/parallelism/parallelism_view.h"
#include "views/plan_table/plan_table_view.h"

namespace turnpoint::app {

namespace {

template <class View>
LinkedView link_view(const QString& key, const QString& title, QWidget* parent, views::SelectionModel* selection,
                     std::shared_ptr<views::ConfigurationColors> colors) {
  auto* view = new View(parent);
  view->set_selection(selection);
  view->share_colors(std::move(colors));
  return {key,
          title,
          view,
          [view](ModelPtr model) { view->set_model(std::move(model)); },
          [view](std::shared_ptr<const Plan> plan, ScenarioPtr scenario) {
            view->set_plan(std::move(plan), std::move(scenario));
          },
          [view] { return view->save_state(); },
          [view](const QJsonObject& state) { view->restore_state(state); },
          view->tool_bar()};
}

}  // namespace

std::vector<LinkedView> make_linked_views(QWidget* parent, views::SelectionModel* selection) {
  std::vector<LinkedView> list;
  // A configuration has one colour, whichever view shows it.
  const auto colors = std::make_shared<views::ConfigurationColors>();
  list.push_back(link_view<views::GraphView>(QStringLiteral("graph"), QObject::tr("Graph"), parent, selection, colors));
  list.push_back(link_view<views::PlanTableView>(QStringLiteral("plan_table"), QObject::tr("Plan table"), parent,
                                                 selection, colors));
  return list;
}

LinkedView make_hardware_tab(views::HardwareView* view) {
  return {QStringLiteral("hardware"),
          QObject::tr("Hardware"),
          view,
          [](const ModelPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [view] { return view->save_state(); },
          [view](const QJsonObject& state) { view->restore_state(state); },
          view->tool_bar()};
}

LinkedView make_comparison_tab(views::ComparisonView* view) {
  return {QStringLiteral("comparison"),
          QObject::tr("Methods"),
          view,
          [](const ModelPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [view] { return view->save_state(); },
          [view](const QJsonObject& state) { view->restore_state(state); },
          view->tool_bar()};
}

LinkedView make_notes_tab(views::NotesView* view) {
  return {QStringLiteral("notes"),
          QObject::tr("Notes"),
          view,
          [](const ModelPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [] { return QJsonObject(); },
          [](const QJsonObject&) {},
          view->tool_bar()};
}

LinkedView make_parallelism_tab(views::ParallelismView* view, ParallelismPage* page) {
  return {QStringLiteral("parallelism"),
          QObject::tr("Parallelism"),
          view,
          [](const ModelPtr&) {},
          [](const std::shared_ptr<const Plan>&, const ScenarioPtr&) {},
          [page] { return page->save_state(); },
          [page](const QJsonObject& state) { page->restore_state(state); },
          view->tool_bar()};
}

}  // namespace turnpoint::app
