// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/marker_groups.h"

#include <QLineF>
#include <algorithm>
#include <cmath>
#include <numbers>

namespace turnpoint::views {

namespace {
constexpr double kFanStep_px = 19, kLeastFan_px = 24, kFanEdge_px = 12;
}

std::vector<MarkerGroup> marker_groups(const ChartState& state,
                                       const std::function<QPointF(const ResultPoint&)>& pixel) {
  std::vector<MarkerGroup> groups;
  for (const ChartSeries& series : state.data.series) {
    if (!state.visible(series)) continue;
    const auto& points = series.result->points;
    if (series.frontier && (series.line || points.size() > ChartSeries::kFewPlans)) continue;
    for (std::size_t i = 0; i < points.size(); ++i) {
      if (!drawable(points[i])) continue;
      const QPointF at = pixel(points[i]);
      // By the distance from a group's first member: along a chain of near ones a group would have no end.
      const auto near = std::find_if(groups.begin(), groups.end(), [&](const MarkerGroup& group) {
        return QLineF(group.at, at).length() < kTogether_px;
      });
      if (near == groups.end())
        groups.push_back({at, {{series.method, i}}});
      else
        near->members.push_back({series.method, i});
    }
  }
  return groups;
}

bool MarkerFan::covers(QPointF position) const { return QLineF(centre, position).length() <= radius + kFanEdge_px; }

std::size_t MarkerFan::nearest(QPointF position) const {
  const auto distance = [&](const QPointF& one) { return QLineF(one, position).length(); };
  return std::size_t(std::min_element(at.begin(), at.end(),
                                      [&](const QPointF& a, const QPointF& b) { return distance(a) < distance(b); }) -
                     at.begin());
}

MarkerFan fan_of(const MarkerGroup& group, const QRectF& frame) {
  MarkerFan fan;
  const auto count = double(group.members.size());
  fan.radius = std::max(kLeastFan_px, count * kFanStep_px / (2 * std::numbers::pi));
  const double room = fan.radius + kFanEdge_px;
  const auto inside = [room](double wanted, double low, double high) {
    return low + room > high - room ? (low + high) / 2 : std::clamp(wanted, low + room, high - room);
  };
  fan.centre = {inside(group.at.x(), frame.left(), frame.right()), inside(group.at.y(), frame.top(), frame.bottom())};
  for (double i = 0; i < count; ++i) {
    const double turn = 2 * std::numbers::pi * i / count - std::numbers::pi / 2;
    fan.at.push_back(fan.centre + fan.radius * QPointF(std::cos(turn), std::sin(turn)));
  }
  return fan;
}

QString group_title(const QStringList& names) {
  constexpr qsizetype kMostNames = 2;
  // "+1" would take as much room as most names.
  if (names.size() <= kMostNames + 1) return names.join(QStringLiteral(", "));
  return names.mid(0, kMostNames).join(QStringLiteral(", ")) + QStringLiteral(", +%1").arg(names.size() - kMostNames);
}

}  // namespace turnpoint::views
