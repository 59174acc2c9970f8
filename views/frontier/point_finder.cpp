// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/point_finder.h"

#include <qcustomplot.h>

#include <cmath>

namespace turnpoint::views {

std::optional<PickedPoint> find_nearest(const ChartState& state, const QCustomPlot& plot, QPointF position,
                                        double reach) {
  std::optional<PickedPoint> best;
  if (!QRectF(plot.axisRect()->rect()).adjusted(-4, -4, 4, 4).contains(position)) return best;
  double nearest = reach;
  for (const auto& series : state.data.series) {
    if (!state.visible(series)) continue;
    const double bonus = series.frontier ? 0 : 3;
    for (std::size_t i = 0; i < series.result->points.size(); ++i) {
      const auto& p = series.result->points[i];
      if (!drawable(p)) continue;
      const double dx = plot.xAxis->coordToPixel(state.units.x(static_cast<double>(p.memory_bytes))) - position.x();
      if (std::abs(dx) > reach) continue;
      const double dy = plot.yAxis->coordToPixel(state.units.y(p.time_s)) - position.y();
      const double distance = std::hypot(dx, dy) - bonus;
      if (distance < nearest) {
        nearest = distance;
        best = PickedPoint{series.method, i};
      }
    }
  }
  return best;
}

}  // namespace turnpoint::views
