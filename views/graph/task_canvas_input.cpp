// SPDX-License-Identifier: Apache-2.0
// Mouse and keys of the task graph's canvas.
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QKeyEvent>
#include <QMenu>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/picture_export.h"
#include "views/graph/task_canvas.h"
#include "views/graph/task_hover.h"

namespace turnpoint::views {

namespace {

constexpr double kLineReach = 5;  // device pixels
constexpr double kFoldCorner = 18;

}  // namespace

TaskHit TaskCanvas::hit_at(QPointF device) const {
  if (!scene_) return {};
  TaskHit hit = hit_test(*scene_, to_scene(device), kLineReach / zoom());
  if (hit.box <= 0) return hit;
  // What is not painted as such cannot be hit.
  const int painted = TaskPainter::painted_box(*scene_, task_paint(), hit.box);
  if (painted != hit.box || (box(painted).open && !task_paint().shows_inside(*scene_, box(painted))))
    return {painted, -1, false};
  // The ground of an open box is no box, its title is.
  if (box(hit.box).open && !hit.header) hit.box = -1;
  return hit;
}

HoverText TaskCanvas::words_for(const TaskHit& hit) const {
  if (!scene_ || !figures_) return {};
  if (hit.line >= 0) return line_hover(*figures_, scene_->line_edge[std::size_t(hit.line)]);
  if (hit.box <= 0) return {};
  return box(hit.box).is_group ? group_hover(*figures_, box(hit.box).index) : task_hover(*figures_, box(hit.box).index);
}

void TaskCanvas::set_hover(const TaskHit& hit, QPointF device) {
  pointer_ = device;
  const bool moved = !(hit == hover_);
  hover_ = hit;
  if (moved) {
    hover_text_ = words_for(hit);
    const bool task = hit.box > 0 && !box(hit.box).is_group;
    if (same_graph()) selection_->hover_task(task ? box(hit.box).index : kNone);
  }
  if (moved || !hover_text_.empty()) viewport()->update();
}

void TaskCanvas::point_at(QPointF device) { set_hover(hit_at(device), device); }
void TaskCanvas::clear_hover() { set_hover({}, pointer_); }

void TaskCanvas::pick(int index, bool add) {
  if (!same_graph()) return;
  std::set<TaskIndex> tasks;
  if (index > 0) {
    const auto inside = tasks_in(hierarchy(), box(index));
    tasks.insert(inside.begin(), inside.end());
  }
  changing_selection_ = true;
  if (!add) {
    selection_->pick_tasks(std::move(tasks));
  } else if (!tasks.empty()) {
    auto all = selection_->tasks();
    const bool have = std::includes(all.begin(), all.end(), tasks.begin(), tasks.end());
    for (const TaskIndex task : tasks) have ? void(all.erase(task)) : void(all.insert(task));
    selection_->pick_tasks(std::move(all));
  }
  changing_selection_ = false;
}

void TaskCanvas::toggle(int index) {
  if (index > 0 && box(index).is_group) emit toggle_fold(box(index).index, !box(index).open);
}

void TaskCanvas::click(QPointF device, Qt::KeyboardModifiers modifiers) {
  const TaskHit hit = hit_at(device);
  if (hit.header && to_scene(device).x() < box(hit.box).rect.left() + kFoldCorner) return toggle(hit.box);
  focus_ = hit.box;
  pick(hit.box, modifiers & Qt::ControlModifier);
  viewport()->update();
}

void TaskCanvas::double_click(QPointF device) {
  const TaskHit hit = hit_at(device);
  if (hit.box > 0 && box(hit.box).is_group) {
    // Open but too small to see into: come closer instead.
    if (box(hit.box).open && !hit.header) return show_box(hit.box, true);
    return toggle(hit.box);
  }
  if (hit.box > 0) {
    set_zoom(zoom() < 2 ? 2.2 : 1.0, device);
    return center_on(box(hit.box).rect.center());
  }
  if (hit.line < 0 && hit_test(*scene_, to_scene(device), 0).box <= 0) fit();
}

void TaskCanvas::focused_by_keyboard() {
  if (focus_ <= 0 && scene_ && scene_->boxes.size() > 1) set_current_box(1);
}

void TaskCanvas::step_to(int dx, int dy) {
  if (focus_ <= 0) return focused_by_keyboard();
  const QPointF here = box(focus_).rect.center();
  int best = -1;
  double nearest = std::numeric_limits<double>::max();
  for (int b = 1; b < int(scene_->boxes.size()); ++b) {
    if (b == focus_ || box(b).open || TaskPainter::painted_box(*scene_, task_paint(), b) != b) continue;
    const QPointF delta = box(b).rect.center() - here;
    const double along = dx != 0 ? delta.x() * dx : delta.y() * dy, off = dx != 0 ? delta.y() : delta.x();
    if (along < 4) continue;
    const double distance = along + 3 * std::abs(off);
    if (distance < nearest) best = b, nearest = distance;
  }
  // At the end of a line reading goes on in the next.
  if (best < 0 && dx != 0 && focus_ + dx > 0 && focus_ + dx < int(scene_->boxes.size())) best = focus_ + dx;
  if (best < 0) return;
  set_current_box(best);
  show_box(best, false);
  pick(best, false);
}

void TaskCanvas::keyPressEvent(QKeyEvent* event) {
  if (!scene_ || scene_->boxes.size() < 2) return QAbstractScrollArea::keyPressEvent(event);
  by_keyboard_ = true;
  if (zoom_key(event)) return;
  switch (event->key()) {
    case Qt::Key_Left: return step_to(-1, 0);
    case Qt::Key_Right: return step_to(1, 0);
    case Qt::Key_Up: return step_to(0, -1);
    case Qt::Key_Down: return step_to(0, 1);
    case Qt::Key_Home:
    case Qt::Key_End:
      set_current_box(event->key() == Qt::Key_Home ? 1 : int(box(0).child_end) - 1);
      show_box(focus_, false);
      return pick(focus_, false);
    case Qt::Key_Return:
    case Qt::Key_Enter: return toggle(focus_);
    case Qt::Key_Backspace:
      if (focus_ > 0 && box(focus_).open) return toggle(focus_);
      if (focus_ > 0) toggle(box(focus_).parent);
      return;
    case Qt::Key_C:
      if (!(event->modifiers() & Qt::ControlModifier) || focus_ <= 0) break;
      QApplication::clipboard()->setText(plain_text(words_for({focus_, -1, false})));
      return;
    case Qt::Key_Escape:
      if (!hover_text_.empty()) return clear_hover();
      if (same_graph() && !selection_->tasks().empty()) return selection_->pick_tasks({});
      break;
    default: break;
  }
  QAbstractScrollArea::keyPressEvent(event);
}

void TaskCanvas::contextMenuEvent(QContextMenuEvent* event) {
  if (!scene_ || !figures_) return;
  const TaskHit hit = event->reason() == QContextMenuEvent::Mouse ? hit_at(event->pos()) : TaskHit{focus_, -1, false};
  const QString words = plain_text(words_for(hit));
  QMenu menu(this);
  menu.setObjectName(QStringLiteral("task_graph_menu"));
  if (hit.box > 0) {
    const TaskBox here = box(hit.box);
    const int index = hit.box;
    menu.addAction(tr("Show in the timeline"), this, [this, index] { pick(index, false); })
        ->setEnabled(same_graph() && selection_->schedule() != nullptr);
    if (here.is_group) {
      menu.addAction(here.open ? tr("Fold") : tr("Unfold"), this,
                     [this, here] { emit toggle_fold(here.index, !here.open); });
      menu.addAction(tr("Unfold everything inside"), this, [this, here] { emit unfold_all_in(here.index); });
    }
    if (here.parent > 0) {
      const std::uint32_t around = box(here.parent).index;
      menu.addAction(tr("Fold %1").arg(box(here.parent).name), this,
                     [this, around] { emit toggle_fold(around, false); });
    }
    const QString name =
        here.is_group ? to_qt(hierarchy().path(here.index)) : to_qt(hierarchy().graph->names[here.index]);
    menu.addSeparator();
    menu.addAction(tr("Copy name"), this, [name] { QApplication::clipboard()->setText(name); });
  }
  menu.addAction(tr("Copy details"), this, [words] { QApplication::clipboard()->setText(words); })
      ->setEnabled(!words.isEmpty());
  menu.addAction(tr("Fit"), this, &TaskCanvas::fit);
  menu.addSeparator();
  add_picture_actions(&menu, this);
  clear_hover();
  menu.exec(event->globalPos());
}

}  // namespace turnpoint::views
