// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_state.h"

namespace turnpoint::views {

bool ChartState::visible(const ChartSeries& series) const {
  return series.result && (show_others || &series == data.subject());
}

const ResultPoint* ChartState::find_point(const std::optional<PickedPoint>& picked) const {
  if (!picked) return nullptr;
  const ChartSeries* series = data.find(picked->method);
  if (!series || !visible(*series) || picked->index >= series->result->points.size()) return nullptr;
  const ResultPoint& point = series->result->points[picked->index];
  return drawable(point) ? &point : nullptr;
}

}  // namespace turnpoint::views
