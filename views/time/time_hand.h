// SPDX-License-Identifier: Apache-2.0
// Mouse, wheel and keys over a view of time, alike in all of them: the wheel zooms about the pointer, a drag pans, a
// drag on the ruler or with Shift picks a range of time.
#pragma once

#include <QPointF>

#include "views/time/time_zoom.h"

class QKeyEvent;
class QMouseEvent;
class QWheelEvent;
class QWidget;

namespace turnpoint::views {

class TimeHand {
 public:
  enum class Drag { none, waiting, pan, range, other };

  TimeHand(QWidget* surface, TimeZoomPtr zoom) : surface_(surface), zoom_(std::move(zoom)) {}

  Drag drag() const { return drag_; }
  bool rests() const { return drag_ == Drag::none || drag_ == Drag::waiting; }
  QPointF pressed_at() const { return press_; }
  /// False: another button. The drag begins once the pointer is far enough away.
  bool press(const QMouseEvent& event, const TimeWindow& window);
  void press_other() { drag_ = Drag::other; }  ///< a drag of the view's own
  /// True where a drag begins with this move.
  bool begins(const QMouseEvent& event, bool on_ruler);
  /// How far the pointer went since the last move; pans or picks by it.
  QPointF move(QPointF to, const TimeWindow& window);
  bool release();  ///< whether it was a click
  void cancel() { drag_ = Drag::none; }

  void wheel(const QWheelEvent& event, const TimeWindow& window);
  bool key(const QKeyEvent& event);  ///< false: it is none of those

 private:
  QWidget* surface_;
  TimeZoomPtr zoom_;
  Drag drag_ = Drag::none;
  QPointF press_, last_;
  double press_time_ = 0;
};

}  // namespace turnpoint::views
