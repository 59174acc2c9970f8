// SPDX-License-Identifier: Apache-2.0
// The tabs below the chart. Each shows the picked plan and shares the selection; the window knows them only like this.
#pragma once

#include <QJsonObject>
#include <QString>
#include <functional>
#include <memory>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

class QWidget;

namespace turnpoint::views {
class ComparisonView;
class HardwareView;
class MemoryView;
class NotesView;
class ParallelismView;
class SelectionModel;
class TimelineView;
class ValidationView;
}  // namespace turnpoint::views

namespace turnpoint::app {

class GraphTab;
class ParallelismPage;

struct LinkedView {
  QString key, title;  ///< key: dock's object name, never translated
  QWidget* widget = nullptr;
  std::function<void(const ScenarioPtr&)> set_model;  ///< the scenario's; null: nothing open
  std::function<void(std::shared_ptr<const Plan>, ScenarioPtr)> set_plan;
  std::function<QJsonObject()> save_state;
  std::function<void(const QJsonObject&)> restore_state;
  QWidget* tool_bar = nullptr;  ///< becomes the dock's title
  bool outdated = false;        ///< a plan came while the view was hidden
};

/// Graph, timeline, memory, tasks, plan table: all about the picked point.
struct LinkedTabs {
  std::vector<LinkedView> list;
  GraphTab* graph = nullptr;
  views::TimelineView* timeline = nullptr;
  views::MemoryView* memory = nullptr;
};
LinkedTabs make_linked_views(QWidget* parent, views::SelectionModel* selection);
/// The page about the hardware is a tab like them, but follows the scenario's machine, not the plan.
LinkedView make_hardware_tab(views::HardwareView* view);
/// So are the session's notes and the tab about device counts.
LinkedView make_notes_tab(views::NotesView* view);
/// Methods side by side: follows the chart.
LinkedView make_comparison_tab(views::ComparisonView* view);
/// Plans that were run here: follows its own list of reports, and the model for the selection.
LinkedView make_validation_tab(views::ValidationView* view);
LinkedView make_parallelism_tab(views::ParallelismView* view, ParallelismPage* page);

}  // namespace turnpoint::app
