// SPDX-License-Identifier: Apache-2.0
// From counts, values and prices to pixels, for one size of the parallelism chart.
#pragma once

#include "views/common/format.h"
#include "views/parallelism/parallelism_chart.h"

namespace turnpoint::views {

struct ParallelismChart::Scale {
  QRectF plot;
  double left = 0, right = 1;  ///< log2 of devices at the plot's sides
  double low = 0, high = 1;    ///< values at bottom and top
  double step = 1;             ///< of linear ticks
  double top = 0;              ///< pixel of the largest value: below the row of what does not fit
  double price_high = 0;       ///< 0: no price axis
  int intervals = 5;           ///< of linear ticks, shared by both axes
  bool logarithmic = false;
  bool captioned = true;  ///< room for the words below the counts
  TimeUnit unit;

  double x(double devices) const;
  double y(double value) const;
  double price_y(double price) const { return plot.bottom() - (plot.bottom() - top) * price / price_high; }
  /// Half the distance to the neighbouring count on either side.
  QRectF column(const std::vector<int>& counts, std::size_t index) const;
  std::vector<double> ticks() const;
};

}  // namespace turnpoint::views
