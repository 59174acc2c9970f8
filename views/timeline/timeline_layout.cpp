// SPDX-License-Identifier: Apache-2.0
#include "views/timeline/timeline_layout.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kLeastPitch = 12, kMostPitch = 72;
constexpr double kOverview = 24, kOverviewGap = 4;
constexpr double kLegendFrom = 210;  // total height; below, lanes need it more
constexpr double kRight = 10;

}  // namespace

TimelineLayout TimelineLayout::make(QSizeF size, const TimelineSummary* summary, double gutter_width,
                                    double line_height, double scroll) {
  TimelineLayout l;
  l.devices = summary ? std::uint32_t(summary->schedule()->devices.size()) : 0;
  const double ruler = std::ceil(line_height) + 8;
  const double legend = size.height() >= kLegendFrom ? std::ceil(line_height) + 6 : 0;
  const double foot = kOverview + 2 * kOverviewGap + legend;
  const double width = std::max(40.0, size.width() - gutter_width - kRight);
  const double height = std::max(kLeastPitch, size.height() - ruler - foot);
  l.corner = {0, 0, gutter_width, ruler};
  l.ruler = {gutter_width, 0, width, ruler};
  l.gutter = {0, ruler, gutter_width, height};
  l.lanes = {gutter_width, ruler, width, height};
  l.overview_label = {0, ruler + height + kOverviewGap, gutter_width, kOverview};
  l.overview = {gutter_width, ruler + height + kOverviewGap, width, kOverview};
  if (legend > 0) l.legend = {0, size.height() - legend, size.width(), legend};

  l.pitch = l.devices == 0 ? kMostPitch : std::clamp(std::floor(height / l.devices), kLeastPitch, kMostPitch);
  bool other = false, network = false;
  if (summary)
    for (const TimelineSummary::Lane& lane : summary->lanes()) {
      other = other || lane.kind != LaneKind::compute;
      network = network || lane.kind == LaneKind::network;
    }
  const double gap = l.pitch >= 40 ? std::round(l.pitch * 0.22) : std::max(2.0, std::round(l.pitch * 0.16));
  l.top = std::floor(gap / 2);
  l.between = other && l.pitch >= 22 ? 2 : 0;
  l.other_height = other ? std::max(3.0, std::round(l.pitch * (network ? 0.15 : 0.2))) : 0;
  l.network_gap = network ? std::min(1.0, l.between) : 0;
  l.compute_height = l.pitch - gap - l.between - l.other_height - (network ? l.other_height + l.network_gap : 0);
  l.scroll = std::round(std::clamp(scroll, 0.0, std::max(0.0, l.content_height() - height)));
  return l;
}

QRectF TimelineLayout::bar(const TimelineSummary::Lane& lane) const {
  const double y = row_top(lane.device) + top;
  if (lane.kind == LaneKind::compute) return {lanes.left(), y, lanes.width(), compute_height};
  const double below = lane.kind == LaneKind::network ? other_height + network_gap : 0;
  return {lanes.left(), y + compute_height + between + below, lanes.width(), other_height};
}

std::uint32_t TimelineLayout::device_at(double y) const {
  if (y < lanes.top() || y >= lanes.bottom() || devices == 0) return kNone;
  const double row = (y - lanes.top() + scroll) / pitch;
  return row >= 0 && row < devices ? std::uint32_t(row) : kNone;
}

std::uint32_t TimelineLayout::first_device() const { return std::min(devices, std::uint32_t(scroll / pitch)); }

std::uint32_t TimelineLayout::last_device() const {
  return std::min(devices, std::uint32_t(std::ceil((scroll + lanes.height()) / pitch)));
}

}  // namespace turnpoint::views
