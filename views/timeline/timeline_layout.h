// SPDX-License-Identifier: Apache-2.0
// Where things are in the timeline: gutter, ruler, rows of devices, overview and legend, for one size and scroll.
#pragma once

#include <QRectF>
#include <QSizeF>

#include "views/timeline/timeline_summary.h"

namespace turnpoint::views {

struct TimelineLayout {
  QRectF corner, ruler, gutter, lanes, overview_label, overview, legend;  ///< legend is empty where there is no room
  double pitch = 50;                                                      ///< of one device
  double compute_height = 22, other_height = 10, between = 2, top = 4;    ///< within a row
  double network_gap = 0;  ///< between the two rows of links
  double scroll = 0;                                                      ///< device pixels above the first visible row
  std::uint32_t devices = 0;

  static TimelineLayout make(QSizeF size, const TimelineSummary* summary, double gutter_width, double line_height,
                             double scroll);

  double content_height() const { return pitch * devices; }
  double row_top(std::uint32_t device) const { return lanes.top() + device * pitch - scroll; }
  /// Bar of a lane across the whole width of the lanes.
  QRectF bar(const TimelineSummary::Lane& lane) const;
  /// kNone: none there.
  std::uint32_t device_at(double y) const;
  std::uint32_t first_device() const;
  std::uint32_t last_device() const;  ///< one behind
  bool two_lines(double line_height) const { return pitch >= 2 * line_height + 4; }
};

}  // namespace turnpoint::views
