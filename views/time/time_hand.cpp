// SPDX-License-Identifier: Apache-2.0
#include "views/time/time_hand.h"

#include <QApplication>
#include <QMouseEvent>
#include <QWheelEvent>
#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {
constexpr double kZoomStep = 1.25, kPanShare = 0.1;
}

bool TimeHand::press(const QMouseEvent& event, const TimeWindow& window) {
  if (event.button() != Qt::LeftButton && event.button() != Qt::MiddleButton) return false;
  press_ = last_ = event.position();
  press_time_ = window.at(press_.x());
  drag_ = Drag::waiting;
  return true;
}

bool TimeHand::begins(const QMouseEvent& event, bool on_ruler) {
  if (drag_ != Drag::waiting) return false;
  if ((event.position() - press_).manhattanLength() < QApplication::startDragDistance()) return false;
  drag_ = (event.modifiers() & Qt::ShiftModifier) || on_ruler ? Drag::range : Drag::pan;
  surface_->setCursor(drag_ == Drag::range ? Qt::SizeHorCursor : Qt::ClosedHandCursor);
  return true;
}

QPointF TimeHand::move(QPointF to, const TimeWindow& window) {
  const QPointF delta = to - last_;
  if (drag_ == Drag::pan) zoom_->pan(-delta.x() / window.width);
  if (drag_ == Drag::range)
    zoom_->pick_range(press_time_, window.at(std::clamp(to.x(), window.left, window.left + window.width)));
  last_ = to;
  return delta;
}

bool TimeHand::release() {
  surface_->unsetCursor();
  return std::exchange(drag_, Drag::none) == Drag::waiting;
}

void TimeHand::wheel(const QWheelEvent& event, const TimeWindow& window) {
  const QPoint delta = event.angleDelta();
  if ((event.modifiers() & Qt::ShiftModifier) || std::abs(delta.x()) > std::abs(delta.y()))
    zoom_->pan(-(delta.x() != 0 ? delta.x() : delta.y()) / 120.0 * kPanShare);
  else
    zoom_->zoom(std::pow(kZoomStep, delta.y() / 120.0), window.at(event.position().x()));
}

bool TimeHand::key(const QKeyEvent& event) {
  switch (event.key()) {
    case Qt::Key_Left:
    case Qt::Key_A: zoom_->pan(-kPanShare); return true;
    case Qt::Key_Right:
    case Qt::Key_D: zoom_->pan(kPanShare); return true;
    case Qt::Key_W:
    case Qt::Key_Plus:
    case Qt::Key_Equal: zoom_->zoom(kZoomStep, zoom_->middle()); return true;
    case Qt::Key_S:
    case Qt::Key_Minus: zoom_->zoom(1 / kZoomStep, zoom_->middle()); return true;
    case Qt::Key_0:
      if (!(event.modifiers() & Qt::ControlModifier)) return false;
      [[fallthrough]];
    case Qt::Key_F:
    case Qt::Key_Home: zoom_->fit(); return true;
    default: return false;
  }
}

}  // namespace turnpoint::views
