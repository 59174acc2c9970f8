// SPDX-License-Identifier: Apache-2.0
// The column right of the task graph: devices with their load (or scopes, or steps of heat), what lines mean, and the
// mini-map.
#pragma once

#include <QPointer>
#include <vector>

#include "views/common/selection_model.h"
#include "views/graph/scene_legend.h"
#include "views/graph/task_canvas.h"

namespace turnpoint::views {

struct TaskLegendRow {
  std::size_t color = 0;
  QString text, value;
  std::uint32_t device = kNone;          ///< of a device row; kNone: other
  std::vector<std::uint32_t> positions;  ///< of a scope row: begin and end in the hierarchy's order
};
std::vector<TaskLegendRow> task_legend_rows(const TaskFigures& figures, const TaskScene& scene, TaskColor color);

class TaskLegend : public SceneLegend {
  Q_OBJECT
 public:
  TaskLegend(TaskCanvas* canvas, QWidget* parent = nullptr);
  void set_figures(TaskFiguresPtr figures, TaskColor color, bool critical_path);
  void set_selection(SelectionModel* selection);
  const std::vector<TaskLegendRow>& rows() const { return rows_; }
  QRect row_rect(int row) const;
  /// The last of them stands for all further rows where these would push the meaning of lines out of the legend.
  int drawn_rows() const;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  int row_at(QPoint position) const override;
  QString tip_of(int row) const override;

 private:
  TaskCanvas* canvas_;
  QPointer<SelectionModel> selection_;
  TaskFiguresPtr figures_;
  TaskColor color_ = TaskColor::device;
  bool critical_path_ = true;
  std::vector<TaskLegendRow> rows_;

  int columns() const;
  int rows_high() const { return (drawn_rows() + columns() - 1) / columns(); }
  bool stands_for_more(int row) const { return row + 1 == drawn_rows() && row + 1 < int(rows_.size()); }
  int lines_top() const;
  int lines_high() const;
  void paint_rows(QPainter& painter) const;
  void paint_lines(QPainter& painter) const;
};

}  // namespace turnpoint::views
