// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_canvas.h"

#include <QPainter>
#include <algorithm>

#include "views/graph/task_hover.h"

namespace turnpoint::views {

TaskCanvas::TaskCanvas(QWidget* parent) : SceneCanvas(parent) {
  setAccessibleName(tr("Graph of the tasks"));
  set_least_zoom(0.004);
}

void TaskCanvas::set_scene(std::shared_ptr<TaskScene> scene, TaskFiguresPtr figures, std::uint32_t anchor) {
  const bool same = scene_ && scene && figures_ && figures && figures_->hierarchy == figures->hierarchy;
  const auto box_of = [&](std::uint32_t group) { return group == kNone ? -1 : scene_->box_of_group[group]; };
  QPointF before;
  const bool anchored = same && box_of(anchor) > 0;
  if (anchored) before = to_device(box(box_of(anchor)).rect.topLeft());
  // The keyboard's place survives as the group or task that it was on.
  const bool had_focus = same && focus_ > 0;
  const TaskBox focused = had_focus ? box(focus_) : TaskBox();
  scene_ = std::move(scene);
  // A new scene may lie where the old one did: nothing kept of that one must live on.
  painter_ = {};
  figures_ = std::move(figures);
  hover_ = {};
  hover_text_.clear();
  focus_ = -1;
  if (had_focus) {
    std::uint32_t group = focused.is_group ? focused.index : hierarchy().parent[focused.index];
    if (!focused.is_group) focus_ = scene_->box_of(hierarchy(), focused.index);
    for (; focus_ < 0 && group != kNone; group = hierarchy().groups[group].parent) focus_ = box_of(group);
  }
  if (!same || fitted()) {
    fit();
  } else {
    update_scroll_bars();
    if (anchored && box_of(anchor) > 0) scroll_by(to_device(box(box_of(anchor)).rect.topLeft()) - before);
  }
  find_picked();
  repaint_all();
}

void TaskCanvas::set_figures(TaskFiguresPtr figures, TaskColor color, bool critical_path) {
  figures_ = std::move(figures);
  color_ = color, critical_path_ = critical_path;
  // The box under a resting pointer shows the new placement's numbers.
  if (scene_ && (hover_.box > 0 || hover_.line >= 0)) hover_text_ = words_for(hover_);
  find_picked();
  repaint_all();
}

void TaskCanvas::set_selection(SelectionModel* selection) {
  if (selection_) disconnect(selection_, nullptr, this, nullptr);
  selection_ = selection;
  if (selection_) {
    connect(selection_, &SelectionModel::tasks_changed, this, &TaskCanvas::selection_changed);
    connect(selection_, &SelectionModel::schedule_changed, this, &TaskCanvas::selection_changed);
    connect(selection_, &SelectionModel::device_changed, this, [this] { repaint_all(); });
    connect(selection_, &SelectionModel::hovered_task_changed, this, [this] {
      const TaskIndex task = same_graph() ? selection_->hovered_task() : kNone;
      hovered_elsewhere_ = scene_ && task != kNone ? scene_->box_of(hierarchy(), task) : -1;
      viewport()->update();
    });
  }
  selection_changed();
}

bool TaskCanvas::same_graph() const {
  return selection_ && figures_ && (!selection_->schedule() || selection_->schedule()->graph == hierarchy().graph);
}

void TaskCanvas::find_picked() {
  picked_.clear();
  hovered_elsewhere_ = -1;
  if (!scene_ || !same_graph()) return;
  const std::size_t tasks = hierarchy().order.size();
  for (const TaskIndex task : selection_->tasks())
    if (task < tasks) picked_.push_back(scene_->box_of(hierarchy(), task));
  std::sort(picked_.begin(), picked_.end());
  picked_.erase(std::unique(picked_.begin(), picked_.end()), picked_.end());
}

void TaskCanvas::selection_changed() {
  find_picked();
  viewport()->update();
  if (changing_selection_ || picked_.empty()) return;
  // Something in sight is enough; else the first comes into view.
  const QRectF seen = visible_scene();
  const bool in_sight =
      std::any_of(picked_.begin(), picked_.end(), [&](int b) { return b > 0 && seen.intersects(box(b).rect); });
  if (!in_sight) show_box(picked_.front(), false);
}

void TaskCanvas::show_box(int index, bool readable) {
  if (scene_ && index > 0 && index < int(scene_->boxes.size())) show_rect(box(index).rect, readable);
}

void TaskCanvas::set_current_box(int index) {
  focus_ = index;
  if (scene_ && index > 0) setAccessibleDescription(plain_text(words_for({index, -1, false})));
  viewport()->update();
}

TaskPaint TaskCanvas::task_paint(const SceneView& view) const {
  TaskPaint paint;
  static_cast<SceneView&>(paint) = view;
  paint.color = color_;
  paint.neutral = color_ == TaskColor::device && figures_ && !figures_->schedule;
  paint.critical_path = critical_path_;
  paint.device = selection_ && same_graph() ? selection_->device() : kNone;
  return paint;
}

void TaskCanvas::paint_scene(QPainter& painter, const SceneView& view, bool picture) {
  TaskPainter own;
  (picture ? own : painter_).paint(painter, *scene_, task_paint(view));
}

void TaskCanvas::paint_overlay(QPainter& painter, const SceneView& view) {
  const TaskPaint paint = task_paint(view);
  if (scene_->lines_left_out > 0) {
    constexpr std::size_t kMostPicked = 6;  // of many the bows would be the web that was left out
    for (std::size_t i = 0; i < std::min(picked_.size(), kMostPicked); ++i)
      painter_.paint_left_out(painter, *scene_, paint, hierarchy(), picked_[i]);
    painter_.paint_left_out(painter, *scene_, paint, hierarchy(), hover_.box);
  }
  painter_.paint_line_mark(painter, *scene_, paint, hover_.line);
  painter_.paint_marks(painter, *scene_, paint, picked_, hover_.box > 0 ? hover_.box : hovered_elsewhere_,
                       hasFocus() && by_keyboard_ ? focus_ : -1);
  if (!panning()) paint_hover(painter, hover_text_, pointer_, view.viewport, *view.theme, view.font);
}

}  // namespace turnpoint::views
