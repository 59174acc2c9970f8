// SPDX-License-Identifier: Apache-2.0
// The task graph as a foldable picture: layers by scope with their backward and update tasks inside, coloured by where
// a placement puts them. Sibling of GraphView, which shows the Model's operators and a sharding plan.
//
// How the window uses it: both views are pages of one stack in the Graph tab, and the tool bar beside them is that of
// the page on show. A sharding plan goes to GraphView::set_plan() and raises that page; a placement goes to
// set_schedule() here and raises this one. A graph opened without a Model goes to set_task_graph() alone. Both calls
// return at once: hierarchy and figures are made on another thread, the last good picture stays until then. Give both
// views the same SelectionModel, whose follow_schedule() the window calls with the same schedule. Fold state and
// choices travel by save_state() and restore_state(), the latter before or after the graph.
#pragma once

#include <QJsonObject>
#include <QWidget>
#include <memory>
#include <set>

#include "core/model/task_graph.h"
#include "core/simulation/schedule.h"
#include "views/common/selection_model.h"

namespace turnpoint::views {

class LayoutService;
class TaskCanvas;

class TaskGraphView : public QWidget {
  Q_OBJECT
 public:
  explicit TaskGraphView(QWidget* parent = nullptr);
  ~TaskGraphView() override;

  void set_selection(SelectionModel* selection);
  /// Null: nothing on show. Another graph of the same task names keeps what is unfolded. Drops a schedule of another
  /// graph.
  void set_task_graph(TaskGraphPtr graph);
  /// Null: no device colours. A schedule of another graph brings its graph along.
  void set_schedule(SchedulePtr schedule);

  /// Unfolds whatever hides these tasks and scrolls to the first; what the context menus of other views call.
  void reveal(const std::set<TaskIndex>& tasks);

  QJsonObject save_state() const;  ///< unfolded groups, colouring
  void restore_state(const QJsonObject& state);
  /// On top of the view until it is given another place, as with QDockWidget::setTitleBarWidget.
  QWidget* tool_bar() const;
  /// The whole picture as it is folded and coloured, for exports.
  void paint_to(QPainter& painter, QSize size);
  TaskCanvas* canvas() const;
  LayoutService* layout_service() const;
  bool busy() const;  ///< a hierarchy is being made or levels are being laid out

 signals:
  void export_requested(const QString& suffix);  ///< "png", "svg": the app asks for a file and calls paint_to
  void ready();  ///< the picture belongs to the newest graph, with every level laid out

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Private;
  std::unique_ptr<Private> d_;
};

}  // namespace turnpoint::views
