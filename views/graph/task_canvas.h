// SPDX-License-Identifier: Apache-2.0
// The surface of the task graph: paints a TaskScene and turns mouse and keys into selection, hover and fold requests.
#pragma once

#include <QPointer>
#include <memory>

#include "views/common/selection_model.h"
#include "views/graph/hover_text.h"
#include "views/graph/scene_canvas.h"
#include "views/graph/task_painter.h"
#include "views/graph/task_scene.h"

namespace turnpoint::views {

class TaskCanvas : public SceneCanvas {
  Q_OBJECT
 public:
  explicit TaskCanvas(QWidget* parent = nullptr);

  /// `anchor`: a group whose box keeps its place on the screen if it can; kNone: none.
  void set_scene(std::shared_ptr<TaskScene> scene, TaskFiguresPtr figures, std::uint32_t anchor = kNone);
  /// After decorate(); of the same hierarchy.
  void set_figures(TaskFiguresPtr figures, TaskColor color, bool critical_path);
  void set_selection(SelectionModel* selection);

  const TaskScene* scene() const { return scene_.get(); }
  QSizeF scene_size() const override { return scene_ ? scene_->size : QSizeF(); }
  void show_box(int box, bool readable);
  const HoverText& hover_text() const { return hover_text_; }
  int current_box() const { return focus_; }
  void set_current_box(int box);
  const std::vector<int>& picked_boxes() const { return picked_; }
  TaskPaint task_paint(const SceneView& view) const;
  TaskPaint task_paint() const { return task_paint(view()); }

 signals:
  void toggle_fold(std::uint32_t group, bool open);
  void unfold_all_in(std::uint32_t group);
  void export_requested(const QString& suffix);

 protected:
  void paint_scene(QPainter& painter, const SceneView& view, bool picture) override;
  void paint_overlay(QPainter& painter, const SceneView& view) override;
  void point_at(QPointF device) override;
  void clear_hover() override;
  void click(QPointF device, Qt::KeyboardModifiers modifiers) override;
  void double_click(QPointF device) override;
  void focused_by_keyboard() override;
  void keyPressEvent(QKeyEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;

 private:
  std::shared_ptr<TaskScene> scene_;
  TaskFiguresPtr figures_;
  TaskColor color_ = TaskColor::device;
  bool critical_path_ = true, changing_selection_ = false;
  QPointer<SelectionModel> selection_;
  TaskPainter painter_;
  TaskHit hover_;
  HoverText hover_text_;
  QPointF pointer_;
  int focus_ = -1;
  std::vector<int> picked_;
  int hovered_elsewhere_ = -1;

  TaskHit hit_at(QPointF device) const;
  const TaskBox& box(int index) const { return scene_->boxes[std::size_t(index)]; }
  const TaskHierarchy& hierarchy() const { return *figures_->hierarchy; }
  bool same_graph() const;  ///< the selection's tasks are those of this scene
  void set_hover(const TaskHit& hit, QPointF device);
  HoverText words_for(const TaskHit& hit) const;
  void pick(int box, bool add);
  void toggle(int box);
  void step_to(int dx, int dy);
  void selection_changed();
  void find_picked();
};

}  // namespace turnpoint::views
