// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_data.h"

#include <algorithm>
#include <cmath>

#include "core/plan/beyond_switches.h"
#include "views/common/format.h"

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

bool ChartSeries::beyond() const { return result && !beyond_switches(*result).empty(); }

bool told_apart(const ResultPoint& a, const ResultPoint& b) {
  constexpr double kApart = 1e-3;
  const double memory = double(b.memory_bytes);
  return std::abs(double(a.memory_bytes) - memory) > kApart * memory ||
         std::abs(a.time_s - b.time_s) > kApart * b.time_s;
}

std::size_t distinct_place(const std::vector<ResultPoint>& points, std::size_t index) {
  std::size_t place = 0;
  const ResultPoint* last = nullptr;
  for (std::size_t i = 0; i <= index && i < points.size(); ++i) {
    const ResultPoint& p = points[i];
    if (!drawable(p) || (last && !told_apart(p, *last))) continue;
    last = &p;
    ++place;
  }
  return place;
}

std::size_t distinct_plans(const std::vector<ResultPoint>& points) {
  return points.empty() ? 0 : distinct_place(points, points.size() - 1);
}

namespace {
double rounded_plans(std::size_t count) {
  const double scale = std::pow(10, std::floor(std::log10(double(count))) - 1);
  return std::round(double(count) / scale) * scale;
}
}  // namespace

QString about_plans(std::size_t count) {
  if (count < 100) return grouped_number(double(count), 0);
  return QObject::tr("about %1").arg(grouped_number(rounded_plans(count), 0));
}

QString place_words(std::size_t place, std::size_t count) {
  const bool beyond = count >= 100 && double(place) > rounded_plans(count);
  return QObject::tr("plan %1 of %2")
      .arg(grouped_number(double(place), 0), beyond ? grouped_number(double(count), 0) : about_plans(count));
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

const ChartSeries* ChartData::faster_than_subject() const {
  constexpr double kAsFast = 1e-3;  // less is not told apart
  const ChartSeries* main = subject();
  const auto own = main ? main->result->fastest_that_fits() : std::nullopt;
  const ChartSeries* faster = nullptr;
  double least = own ? main->result->points[*own].time_s * (1 - kAsFast) : 0;
  for (const ChartSeries& other : series) {
    if (&other == main || !other.result || other.stale || !other.of.isEmpty() || other.beyond()) continue;
    const auto at = other.result->fastest_that_fits();
    if (!at || other.result->clock != main->result->clock || other.result->points[*at].time_s >= least) continue;
    least = other.result->points[*at].time_s;
    faster = &other;
  }
  return faster;
}

std::optional<ChartEnvelope> lower_left(const ChartData& data) {
  std::vector<PickedPoint> all;
  const auto at = [&](const PickedPoint& p) -> const ResultPoint& {
    return data.find(p.method)->result->points[p.index];
  };
  for (const auto& s : data.series)
    for (std::size_t i = 0; s.result && !s.stale && i < s.result->points.size(); ++i)
      if (drawable(s.result->points[i])) all.push_back({s.method, i});
  if (all.empty()) return std::nullopt;
  std::stable_sort(all.begin(), all.end(), [&](const PickedPoint& a, const PickedPoint& b) {
    return std::pair(at(a).memory_bytes, at(a).time_s) < std::pair(at(b).memory_bytes, at(b).time_s);
  });
  auto result = std::make_shared<Result>();
  const ChartSeries* subject = data.subject();
  result->scenario = (subject ? *subject : data.series.front()).result->scenario;
  result->clock = data.clock;
  ChartEnvelope envelope;
  for (const PickedPoint& p : all) {
    if (!result->points.empty() && at(p).time_s >= result->points.back().time_s) continue;
    result->points.push_back(at(p));
    envelope.from.push_back(p);
  }
  if (subject) result->slowest_considered_s = subject->result->slowest_considered_s;
  result->turning_point = find_turning_point(result->points, result->slowest_considered_s);
  envelope.result = std::move(result);
  return envelope;
}

QString ChartData::envelope_words() const {
  if (!envelope) return {};
  const ChartUnits units = units_for(*this);
  const auto& from = envelope->from;
  QStringList parts;
  std::size_t runs = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (i + 1 < from.size() && from[i + 1].method == from[i].method) continue;
    const QString giver = find(from[i].method)->title;
    const bool last = i + 1 == from.size();
    const QString end = last ? QString() : units.memory_text(double(envelope->result->points[i + 1].memory_bytes), 100);
    parts << (last && runs == 0 ? QObject::tr("all by %1").arg(giver)
              : last            ? QObject::tr("%1 from there").arg(giver)
                                : QObject::tr("%1 to %2").arg(giver, end));
    ++runs;
  }
  constexpr std::size_t kMostRuns = 3;
  if (runs <= kMostRuns) return parts.join(QStringLiteral(", "));
  QStringList names;  // they take turns: who is among them
  for (const PickedPoint& p : from)
    if (const QString giver = find(p.method)->title; !names.contains(giver)) names << giver;
  return QObject::tr("the best of %1").arg(names.join(QStringLiteral(", ")));
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
    const auto& points = s.result->points;
    for (std::size_t i = s.result->first_considered(); i < points.size(); ++i) take(points[i]);
  }
  if (least_x < 0 || !(most > 0)) return std::nullopt;
  if (!log_time && subject) most = std::min(most, kSteepest * least);
  const auto limit = static_cast<double>(data.memory_limit);
  if (limit > 0 && (x == 0 || limit < 3 * x)) x = std::max(x, limit * 1.06);
  if (others && subject) {
    // What does not fit is of less interest than the room it would take: from further off it is named at the edge.
    const double far_x = 1.6 * x, near_x = 1.15 * x, far_y = 1.6 * most;
    for (const auto& s : data.series) {
      if (!s.result || &s == subject) continue;
      for (const auto& p : s.result->points)
        if (drawable(p) && static_cast<double>(p.memory_bytes) <= (p.fits ? far_x : near_x) && p.time_s <= far_y)
          take(p);
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
