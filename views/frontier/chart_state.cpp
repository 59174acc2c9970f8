// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_state.h"

namespace turnpoint::views {

bool ChartState::visible(const ChartSeries& series) const {
  return series.result && (show_others || &series == data.subject());
}

bool ChartState::fits(const ChartSeries& series, const ResultPoint& point) const {
  if (data.own_limits) return point.fits;
  if (data.memory_limit <= 0) return true;
  const Result& result = *series.result;
  if (!result.fits_by_peak) return point.memory_bytes <= data.memory_limit;
  if (point.simulated_memory_bytes) return *point.simulated_memory_bytes <= data.memory_limit;
  // The line may be ahead of the result while it is dragged.
  return point.fits ? point.memory_bytes <= data.memory_limit
                    : point.memory_bytes <= data.memory_limit && result.scenario->memory_limit() < data.memory_limit;
}

const ResultPoint* ChartState::find_point(const std::optional<PickedPoint>& picked) const {
  if (!picked) return nullptr;
  const ChartSeries* series = data.find(picked->method);
  if (!series || !visible(*series) || picked->index >= series->result->points.size()) return nullptr;
  const ResultPoint& point = series->result->points[picked->index];
  return drawable(point) ? &point : nullptr;
}

}  // namespace turnpoint::views
