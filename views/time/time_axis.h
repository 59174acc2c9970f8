// SPDX-License-Identifier: Apache-2.0
// The stretch of time on show and its place in pixels; ticks and words of instants at any zoom. Shared by timeline and
// memory.
#pragma once

#include <QFontMetricsF>
#include <QRectF>
#include <QString>
#include <vector>

#include "views/common/format.h"

namespace turnpoint::views {

/// Seconds [from, to] lie at pixels [left, left + width].
struct TimeWindow {
  double from = 0, to = 1;
  double left = 0, width = 1;

  double span() const { return to - from; }
  double per_pixel() const { return span() / width; }
  double x(double seconds) const { return left + (seconds - from) / span() * width; }
  double at(double x) const { return from + (x - left) / width * span(); }
};

/// Which part of [0, makespan] is on show. Never an empty part, never one beyond the ends by more than a margin.
class TimeView {
 public:
  void set_makespan(double seconds);  ///< shows all of it
  double makespan() const { return makespan_; }
  double from() const { return from_; }
  double to() const { return to_; }
  bool fitted() const { return fitted_; }
  double least_span() const;  ///< closest zoom

  void fit();
  void show(double from, double to);       ///< as nearly as the bounds allow
  void zoom(double factor, double still);  ///< `still` keeps its place; above 1 comes closer
  void pan(double seconds);                ///< positive: to later times
  bool reveal(double from, double to);     ///< moves, or zooms out, no further than needed; whether it had to
  TimeWindow window(double left, double width) const { return {from_, to_, left, width}; }

 private:
  void clamp();
  double makespan_ = 0, from_ = 0, to_ = 1;
  bool fitted_ = true;
};

/// Labelled instants of a window, in one unit. Where absolute numbers would need more digits than anyone reads, labels
/// count from `base_s`, which `base_text` says.
struct TimeTicks {
  double first = 0, step = 1;  ///< seconds
  int count = 0;
  int parts = 5;  ///< unlabelled divisions of a step
  double base_s = 0;
  QString base_text;  ///< empty: labels are absolute
  TimeUnit unit;
  int decimals = 0;

  double at(int index) const { return first + index * step; }
  QString label(int index) const;  ///< with the unit on the first one only
};
TimeTicks time_ticks(const TimeWindow& window, double least_pixels);
/// Where a label stands: its number centred on the tick, the unit behind it, all within [low, high].
QRectF tick_label_rect(const TimeTicks& ticks, int index, const TimeWindow& window, const QFontMetricsF& metrics,
                       double low, double high, double top);

/// An instant with as many decimals as `resolution_s` is worth: "412.083 ms".
QString instant_text(double seconds, double resolution_s);

}  // namespace turnpoint::views
