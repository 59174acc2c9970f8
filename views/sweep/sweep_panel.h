// SPDX-License-Identifier: Apache-2.0
// One figure of a sweep from values to pixels, for one size of the chart.
#pragma once

#include "views/common/format.h"
#include "views/sweep/sweep_chart.h"

namespace turnpoint::views {

struct SweepChart::Panel {
  SweepFigure figure = SweepFigure::time;
  QRectF plot;
  double above = 0;            ///< pixels of `plot` from its top on that are for what does not fit
  double left = 0, right = 1;  ///< logarithms of values at the sides
  double low = 0, high = 1;    ///< of the figure at bottom and top
  double step = 1;             ///< between ticks, of a linear axis
  bool empty = false;          ///< nothing is known: no numbers beside it
  bool logarithmic = false, first = false, rate = false, captioned = true;
  TimeUnit time;
  ByteUnit memory;

  double x(std::int64_t value) const;
  double y(double value) const;
  std::vector<double> ticks() const;
  QString tick_text(double value) const;
};

}  // namespace turnpoint::views
