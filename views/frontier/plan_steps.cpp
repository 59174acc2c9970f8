// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/plan_steps.h"

#include <cmath>

#include "views/frontier/chart_data.h"

namespace turnpoint::views {

std::size_t stepped_plan(const std::vector<ResultPoint>& points, std::size_t from, int steps, double apart,
                         const std::function<QPointF(const ResultPoint&)>& pixel) {
  std::size_t at = from, seen = from;
  QPointF start = pixel(points[from]);
  while (steps != 0) {
    if (steps > 0 ? seen + 1 >= points.size() : seen == 0) break;  // the last one drawn
    seen = steps > 0 ? seen + 1 : seen - 1;
    if (!drawable(points[seen])) continue;
    at = seen;
    const QPointF here = pixel(points[seen]);
    if (std::hypot(here.x() - start.x(), here.y() - start.y()) < apart) continue;
    start = here;
    steps += steps > 0 ? -1 : 1;
  }
  return at;
}

}  // namespace turnpoint::views
