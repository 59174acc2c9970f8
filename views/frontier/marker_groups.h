// SPDX-License-Identifier: Apache-2.0
// Markers that lie so near each other that they cover one another: one label for all, and a fan in which each is seen.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QStringList>
#include <functional>
#include <vector>

#include "views/frontier/chart_state.h"

namespace turnpoint::views {

/// Nearer markers than this cover each other, in pixels.
inline constexpr double kTogether_px = 10;

/// All markers of visible series (single answers, and lines of so few plans that each has a mark), each in one group.
/// The plans of longer lines belong to none. `pixel` puts a point on the screen.
std::vector<MarkerGroup> marker_groups(const ChartState& state,
                                       const std::function<QPointF(const ResultPoint&)>& pixel);

/// A group's markers spread out around it, inside `frame` where that is large enough.
struct MarkerFan {
  QPointF centre;
  double radius = 0;        ///< of the disc on which they lie, pixels
  std::vector<QPointF> at;  ///< by member
  bool covers(QPointF position) const;
  /// The member nearest to `position`.
  std::size_t nearest(QPointF position) const;
};
MarkerFan fan_of(const MarkerGroup& group, const QRectF& frame);

/// "OptCNN", "OptCNN, Data-parallel", "OptCNN, Data-parallel, +2".
QString group_title(const QStringList& names);

}  // namespace turnpoint::views
