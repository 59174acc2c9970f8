// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and keys of the timeline.
#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <QMouseEvent>
#include <QScrollBar>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

#include "views/common/picture_export.h"
#include "views/timeline/timeline_canvas.h"
#include "views/timeline/timeline_words.h"

namespace turnpoint::views {

void TimelineCanvas::pick(const Hit& hit, bool add) {
  if (!selection_ || !summary_) return;
  changing_selection_ = true;
  if (hit.area == Hit::Area::item) {
    const TaskIndex task = summary_->schedule()->task[hit.item];
    set_current(hit.item);
    if (add)
      selection_->toggle_task(task);
    else
      selection_->pick_tasks({task});
  } else if (hit.area == Hit::Area::gutter) {
    selection_->pick_device(selection_->device() == hit.device ? kNone : hit.device);
  } else if (hit.area == Hit::Area::ruler) {
    selection_->pick_time_range(std::nullopt);
  } else if (!add && hit.area != Hit::Area::overview) {
    set_current(kNone);
    selection_->pick_tasks({});
  }
  changing_selection_ = false;
}

void TimelineCanvas::center_overview(double x) {
  const TimelineLayout l = layout();
  const TimeWindow all{0, std::max(time().makespan(), 1e-300), l.overview.left(), l.overview.width()};
  const double half = (time().to() - time().from()) / 2, middle = all.at(x);
  if (!time().fitted()) show_time(middle - half, middle + half);
}

void TimelineCanvas::mousePressEvent(QMouseEvent* event) {
  if (!summary_ || !hand_.press(*event, window())) return;
  if (hit_at(event->position()).area != Hit::Area::overview) return;
  hand_.press_other();
  center_overview(event->position().x());
}

void TimelineCanvas::mouseMoveEvent(QMouseEvent* event) {
  using Drag = TimeHand::Drag;
  const QPointF position = event->position();
  if (hand_.drag() == Drag::none) return set_hover(position);
  if (hand_.drag() == Drag::other) return center_overview(position.x());
  if (hand_.begins(*event, hit_at(hand_.pressed_at()).area == Hit::Area::ruler)) clear_hover();
  if (hand_.drag() == Drag::waiting) return;
  const QPointF delta = hand_.move(position, window());
  if (hand_.drag() == Drag::pan)
    verticalScrollBar()->setValue(verticalScrollBar()->value() - int(std::lround(delta.y())));
  else if (selection_)
    selection_->hover_time(std::nullopt);
}

void TimelineCanvas::mouseReleaseEvent(QMouseEvent* event) {
  if (hand_.release() && event->button() == Qt::LeftButton)
    pick(hit_at(event->position()), event->modifiers() & Qt::ControlModifier);
  set_hover(event->position());
}

void TimelineCanvas::mouseDoubleClickEvent(QMouseEvent* event) {
  hand_.cancel();
  if (event->button() != Qt::LeftButton || !summary_) return;
  const Hit hit = hit_at(event->position());
  if (hit.area == Hit::Area::item) return go_to(hit.item);
  if (hit.area == Hit::Area::ruler && selection_ && selection_->time_range()) return zoom_to_picked();
  if (hit.area != Hit::Area::gutter) zoom_->fit();
}

void TimelineCanvas::wheelEvent(QWheelEvent* event) {
  event->accept();
  if (!summary_) return;
  if (event->position().x() < gutter_ || (event->modifiers() & Qt::AltModifier)) {
    const QPoint delta = event->angleDelta();
    const int turn = delta.y() != 0 ? delta.y() : delta.x();
    verticalScrollBar()->setValue(verticalScrollBar()->value() - turn / 2);
    return;
  }
  hand_.wheel(*event, window());
  set_hover(event->position());
}

void TimelineCanvas::set_hover(QPointF position) {
  pointer_ = position;
  const Hit hit = hit_at(position);
  HoverText text;
  std::optional<double> instant;
  if (hit.area == Hit::Area::item || hit.area == Hit::Area::idle || hit.area == Hit::Area::ruler) {
    const double at = window().at(position.x());
    if (at >= 0 && at <= time().makespan() && position.x() >= layout().lanes.left()) instant = at;
  }
  switch (hit.area) {
    case Hit::Area::item:
      text = item_hover(*summary_, hit.item);
      if (hit.at_once > 1) text.push_back({tr("%1 at once").arg(hit.at_once), {}});
      break;
    case Hit::Area::idle: text = idle_hover(*summary_, hit.device, window().at(position.x())); break;
    case Hit::Area::gutter: text = device_hover(*summary_, hit.device); break;
    default: break;
  }
  hover_ = hit;
  hover_text_ = std::move(text);
  if (follows()) {
    selection_->hover_task(hit.item == kNone ? kNone : summary_->schedule()->task[hit.item]);
    selection_->hover_time(instant);
  }
  viewport()->update();
}

void TimelineCanvas::clear_hover() {
  const bool had = hover_.area != Hit::Area::nothing;
  hover_ = {};
  hover_text_.clear();
  if (had && follows()) {
    selection_->hover_task(kNone);
    selection_->hover_time(std::nullopt);
  }
  viewport()->update();
}

bool TimelineCanvas::viewportEvent(QEvent* event) {
  if (event->type() == QEvent::Leave) clear_hover();
  return QAbstractScrollArea::viewportEvent(event);
}

/// An item fills a good part of the view.
void TimelineCanvas::go_to(std::uint32_t item) {
  const Schedule& s = *summary_->schedule();
  const double from = s.start_s[item], to = s.end_s[item];
  const double pad = std::max(to - from, time().makespan() * 1e-9) * 0.3;
  scroll_to_device(s.lanes[summary_->lane_of(item)].device);
  show_time(from - pad, to + pad);
}

void TimelineCanvas::zoom_to_picked() {
  if (!follows()) return;
  double from = time().makespan(), to = 0;
  if (selection_->time_range()) {
    std::tie(from, to) = *selection_->time_range();
  } else {
    for (const std::uint32_t place : picked_)
      from = std::min(from, summary_->start_s()[place]), to = std::max(to, summary_->end_s()[place]);
  }
  if (to >= from) show_time(from - (to - from) * 0.05, to + (to - from) * 0.05);
}

void TimelineCanvas::step_item(int direction) {
  std::uint32_t next = kNone;
  if (current_ == kNone) {
    const std::uint32_t device =
        follows() && selection_->device() != kNone ? selection_->device() : layout().first_device();
    for (const TimelineSummary::Lane& lane : summary_->lanes_of(device))
      if (next == kNone && lane.tracks > 0) {
        const auto& track = summary_->track(lane.first_track);
        const std::uint32_t place = std::min(summary_->first_ending_after(track, time().from()), track.end - 1);
        if (place >= track.begin && track.end > track.begin) next = summary_->item_at(place);
      }
  } else {
    const auto& lane = summary_->lanes()[summary_->lane_of(current_)];
    const std::uint32_t place = summary_->place_of(current_);
    for (std::uint32_t t = lane.first_track; t < lane.first_track + lane.tracks; ++t) {
      const auto& track = summary_->track(t);
      if (place < track.begin || place >= track.end) continue;
      if (direction > 0 ? place + 1 < track.end : place > track.begin)
        next = summary_->item_at(direction > 0 ? place + 1 : place - 1);
    }
  }
  if (next == kNone) return;
  pick({Hit::Area::item, next, kNone, 0}, false);
  reveal(next, false);
}

void TimelineCanvas::step_device(int direction) {
  if (current_ == kNone) return step_item(1);
  const Schedule& s = *summary_->schedule();
  // The next lane up or down that has anything, at about the same instant.
  const double instant = (s.start_s[current_] + s.end_s[current_]) / 2;
  const auto lanes = int(summary_->lanes().size());
  for (int l = int(summary_->lane_of(current_)) + direction; l >= 0 && l < lanes; l += direction) {
    const auto& lane = summary_->lanes()[std::size_t(l)];
    if (lane.tracks == 0) continue;
    const auto& track = summary_->track(lane.first_track);
    if (track.begin == track.end) continue;
    const std::uint32_t next = summary_->item_at(std::min(summary_->first_ending_after(track, instant), track.end - 1));
    pick({Hit::Area::item, next, kNone, 0}, false);
    return reveal(next, false);
  }
}

void TimelineCanvas::escape() {
  if (hover_.area != Hit::Area::nothing) return clear_hover();
  if (!follows()) return;
  if (selection_->time_range()) return selection_->pick_time_range(std::nullopt);
  set_current(kNone);
  if (!selection_->tasks().empty()) return selection_->pick_tasks({});
  selection_->pick_device(kNone);
}

void TimelineCanvas::keyPressEvent(QKeyEvent* event) {
  if (!summary_ || summary_->schedule()->item_count() == 0) return QAbstractScrollArea::keyPressEvent(event);
  const bool control = event->modifiers() & Qt::ControlModifier, shift = event->modifiers() & Qt::ShiftModifier;
  switch (event->key()) {
    case Qt::Key_Left:
      if (!shift) return step_item(-1);
      break;
    case Qt::Key_Right:
      if (!shift) return step_item(1);
      break;
    case Qt::Key_Up: return step_device(-1);
    case Qt::Key_Down: return step_device(1);
    case Qt::Key_Z: return zoom_to_picked();
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ != kNone) return go_to(current_);
      return zoom_to_picked();
    case Qt::Key_PageUp: return verticalScrollBar()->triggerAction(QScrollBar::SliderPageStepSub);
    case Qt::Key_PageDown: return verticalScrollBar()->triggerAction(QScrollBar::SliderPageStepAdd);
    case Qt::Key_C:
      if (control && current_ != kNone) {
        QApplication::clipboard()->setText(accessibleDescription());
        return;
      }
      break;
    case Qt::Key_Escape: return escape();
    default: break;
  }
  if (hand_.key(*event)) return;
  QAbstractScrollArea::keyPressEvent(event);
}

void TimelineCanvas::contextMenuEvent(QContextMenuEvent* event) {
  if (!summary_) return;
  Hit hit = hit_at(event->pos());
  if (event->reason() != QContextMenuEvent::Mouse && current_ != kNone) hit = {Hit::Area::item, current_, kNone, 0};
  const Schedule& s = *summary_->schedule();
  QMenu menu(this);
  menu.setObjectName(QStringLiteral("timeline_menu"));
  const auto copy = [](const QString& text) { QApplication::clipboard()->setText(text); };
  if (hit.item != kNone) {
    const HoverText words = item_hover(*summary_, hit.item);
    const QString name = words.front().left;
    const QString times =
        QStringLiteral("%1\t%2").arg(s.start_s[hit.item], 0, 'g', 17).arg(s.end_s[hit.item], 0, 'g', 17);
    menu.addAction(tr("Copy name"), this, [=] { copy(name); });
    menu.addAction(tr("Copy start and end in seconds"), this, [=] { copy(times); });
    menu.addAction(tr("Copy all of it"), this, [=] { copy(plain_text(words)); });
    menu.addSeparator();
    menu.addAction(tr("Zoom to this"), this, [this, item = hit.item] { go_to(item); });
  }
  QAction* to_picked = menu.addAction(tr("Zoom to what is picked"), this, &TimelineCanvas::zoom_to_picked);
  to_picked->setEnabled(follows() && (selection_->time_range() || !picked_.empty()));
  menu.addAction(tr("Fit all"), zoom_.get(), &TimeZoom::fit);
  menu.addSeparator();
  add_picture_actions(&menu, this);
  clear_hover();
  menu.exec(event->globalPos());
}

}  // namespace turnpoint::views
