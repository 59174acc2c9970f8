// SPDX-License-Identifier: Apache-2.0
// What the chart's painters share. Owned by FrontierChart; interface thread only.
#pragma once

#include <QColor>
#include <QFont>
#include <QPointF>
#include <QRectF>
#include <optional>
#include <vector>

#include "views/common/selection_model.h"
#include "views/common/theme_colors.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::views {

/// Markers that lie so near each other that they cover one another.
struct MarkerGroup {
  QPointF at;  ///< pixels; its first member's place
  /// In the order of the series; a group of one is a marker by itself.
  std::vector<PickedPoint> members;
};

/// A plan out of view is named at the edge; who clicks the name picks it.
struct EdgeName {
  QRectF at;
  PickedPoint point;
};

struct ChartState {
  ChartData data;
  ChartUnits units;
  bool show_parts = true, show_others = true, show_pinned = true, log_time = false;
  std::string emphasised;  ///< method whose name was clicked
  const SelectionModel* selection = nullptr;
  const ThemeColors* colors = nullptr;
  QFont font;
  QRectF callout;                     ///< where the turning point's words are; the read-out avoids them
  std::vector<QRectF> words;          ///< where any words are; the lines to the axes leave them readable
  std::vector<EdgeName> edge_names;   ///< of what lies out of view
  std::optional<MarkerGroup> fanned;  ///< spread out under the pointer (marker_groups.h)
  double covered_px = 0;              ///< of the top, by what lies over the chart: no words stand there
  bool limit_hovered = false;
  bool nothing_fits_said = false;  ///< beside the memory line; once is enough
  bool picture = false;            ///< being saved: with a title of its own, and shapes where the screen has pixels

  /// Nothing is drawn: the axes' numbers are those of what was there before.
  bool empty() const { return data.series.empty() && data.pinned.empty(); }
  /// Nothing for points that are gone or belong to a hidden method.
  const ResultPoint* find_point(const std::optional<PickedPoint>& picked) const;
  bool visible(const ChartSeries& series) const;
  /// By its simulated peak where that is known; between such points as the result says (core/schedule/fitting.h).
  bool fits(const ChartSeries& series, const ResultPoint& point) const;
};

}  // namespace turnpoint::views
