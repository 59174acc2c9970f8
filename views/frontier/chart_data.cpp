// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_data.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

/// A round number a little above `value`: steps of a twentieth of its decade, so the axis does not end in a tick's
/// label.
double round_up(double value) {
  if (!(value > 0)) return 1;
  const double step = std::pow(10, std::floor(std::log10(value))) / 10;
  return std::ceil(value * 1.03 / step) * step;
}

}  // namespace

bool drawable(const ResultPoint& point) {
  return point.memory_bytes >= 0 && std::isfinite(point.time_s) && std::isfinite(point.compute_s) &&
         std::isfinite(point.network_s) && point.time_s >= 0;
}

std::vector<ResultPoint> ChartSeries::line_points() const {
  if (!line) return result->points;
  std::vector<ResultPoint> points;
  for (const std::size_t i : *line) points.push_back(result->points[i]);
  return points;
}

const ChartSeries* ChartData::subject() const {
  for (const auto& s : series)
    if (s.frontier && s.result && !s.result->points.empty()) return &s;
  for (const auto& s : series)
    if (s.result && s.result->scenario && s.result->scenario->tasks && !s.result->points.empty()) return &s;
  return nullptr;
}

bool ChartData::markers_only() const {
  const ChartSeries* main = subject();
  return main && !main->frontier;
}

const ChartSeries* ChartData::find(const std::string& method) const {
  for (const auto& s : series)
    if (s.method == method) return &s;
  return nullptr;
}

ChartUnits units_for(const ChartData& data) {
  double fastest = 0;
  double most = 0;
  const ChartSeries* subject = data.markers_only() ? nullptr : data.subject();
  for (const auto& s : data.series) {
    if (!s.result || (subject && &s != subject)) continue;
    for (const auto& p : s.result->points) {
      if (!drawable(p)) continue;
      fastest = fastest == 0 ? p.time_s : std::min(fastest, p.time_s);
      most = std::max(most, static_cast<double>(p.memory_bytes));
    }
  }
  ChartUnits units;
  constexpr struct {
    double bytes;
    const char* name;
  } kSmaller[] = {{1048576.0, "MiB"}, {1024.0, "KiB"}, {1.0, "B"}};
  for (const auto& [bytes, name] : kSmaller) {
    if (most <= 0 || most >= units.bytes_per_unit) break;
    units.bytes_per_unit = bytes;
    units.memory_name = QString::fromLatin1(name);
  }
  // The unit follows the fastest plan: that end is what people read, and it does not jump with the steep one.
  if (fastest >= 10) {
    units.per_second = 1;
    units.time_name = QStringLiteral("s");
  } else if (fastest > 0 && fastest < 1e-3) {
    units.per_second = 1e6;
    units.time_name = QStringLiteral("µs");
  }
  return units;
}

std::optional<ChartRange> fitted_range(const ChartData& data, const ChartUnits& units, bool others, bool pinned,
                                       bool log_time) {
  double x = 0, least_x = -1, least = 0, most = 0;
  const auto take = [&](const ResultPoint& p) {
    if (!drawable(p)) return;
    const auto memory = static_cast<double>(p.memory_bytes);
    x = std::max(x, memory);
    least_x = least_x < 0 ? memory : std::min(least_x, memory);
    most = std::max(most, p.time_s);
    if (p.time_s > 0) least = least == 0 ? p.time_s : std::min(least, p.time_s);
  };
  // Markers stand for themselves: none of them is the one that the others are to be near.
  const ChartSeries* subject = data.markers_only() ? nullptr : data.subject();
  for (const auto& s : data.series) {
    if (!s.result || (subject && &s != subject)) continue;
    for (const auto& p : s.result->points) take(p);
  }
  if (least_x < 0 || !(most > 0)) return std::nullopt;
  if (!log_time && subject) most = std::min(most, kSteepest * least);
  const auto limit = static_cast<double>(data.memory_limit);
  if (limit > 0 && (x == 0 || limit < 3 * x)) x = std::max(x, limit * 1.06);
  if (others && subject) {
    const double far_x = 1.6 * x, far_y = 1.6 * most;
    for (const auto& s : data.series) {
      if (!s.result || &s == subject) continue;
      for (const auto& p : s.result->points)
        if (drawable(p) && static_cast<double>(p.memory_bytes) <= far_x && p.time_s <= far_y) take(p);
    }
    if (!log_time) most = std::min(most, 1.6 * kSteepest * least);
  }
  if (pinned && subject) {
    const double far_x = 1.6 * x, fastest = least;
    for (const auto& frontier : data.pinned) {
      if (frontier.points.empty() || !drawable(frontier.points.back())) continue;
      const double own = frontier.points.back().time_s;
      if (own > kSteepest * fastest) continue;
      for (const auto& p : frontier.points)
        if (drawable(p) && static_cast<double>(p.memory_bytes) <= far_x && (log_time || p.time_s <= 2 * own)) take(p);
    }
  }
  ChartRange range;
  // A task graph without byte counts needs no memory anywhere: its times are worth seeing all the same.
  range.x_high = x > 0 ? round_up(units.x(x)) : 1;
  // Unlike time, memory has no parts to read off against zero: where all plans need nearly the same, the axis says so
  // by starting late.
  if (least_x > 0.4 * x) {
    const double span = std::max(units.x(x - least_x), units.x(x) * 0.02);
    range.x_high = units.x(x) + 0.12 * span;
    range.x_low = std::max(0.0, units.x(least_x) - 0.3 * span);
  }
  range.y_high = round_up(units.y(most) * 1.04);
  if (log_time) range.y_low = units.y(least) / 1.1;
  return range;
}

}  // namespace turnpoint::views
