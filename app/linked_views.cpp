// SPDX-License-Identifier: Apache-2.0
#include "app/linked_views.h"

#include <QWidget>

#include "views/common/selection_model.h"

#if __has_include("views/graph/graph_view.h")
#include "views/graph/graph_view.h"
#define TURNPOINT_HAS_GRAPH_VIEW
#endif
#if __has_include("views/plan_table/plan_table_view.h")
#include "views/plan_table/plan_table_view.h"
#define TURNPOINT_HAS_PLAN_TABLE
#endif

namespace turnpoint::app {

namespace {

template <class View>
[[maybe_unused]] LinkedView link_view(const QString& key, const QString& title, QWidget* parent, views::SelectionModel* selection) {
  auto* view = new View(parent);
  view->set_selection(selection);
  return {key, title, view, [view](ModelPtr model) { view->set_model(std::move(model)); },
          [view](std::shared_ptr<const Plan> plan, ScenarioPtr scenario) { view->set_plan(std::move(plan), std::move(scenario)); }};
}

}  // namespace

std::vector<LinkedView> make_linked_views([[maybe_unused]] QWidget* parent, [[maybe_unused]] views::SelectionModel* selection) {
  std::vector<LinkedView> list;
#ifdef TURNPOINT_HAS_GRAPH_VIEW
  list.push_back(link_view<views::GraphView>(QStringLiteral("graph"), QObject::tr("Graph"), parent, selection));
#endif
#ifdef TURNPOINT_HAS_PLAN_TABLE
  list.push_back(link_view<views::PlanTableView>(QStringLiteral("plan_table"), QObject::tr("Plan table"), parent, selection));
#endif
  return list;
}

}  // namespace turnpoint::app
