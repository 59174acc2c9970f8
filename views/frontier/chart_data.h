// SPDX-License-Identifier: Apache-2.0
// What the frontier chart draws: plain data, made by whoever owns the results.
#pragma once

#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/result.h"
#include "views/common/selection_model.h"

namespace turnpoint::views {

/// One method's answer.
struct ChartSeries {
  std::string method;     ///< registry name
  QString title;          ///< the label at the data
  bool frontier = false;  ///< a line; else one marker
  /// Up to so many plans a line is read point by point, and each has a mark of its own.
  static constexpr std::size_t kFewPlans = 8;
  bool coarse = false;  ///< dashed
  ResultPtr result;
  /// On the simulated clock points change places: the line goes through these alone, by rising memory. Null: all.
  std::shared_ptr<const std::vector<std::size_t>> line = nullptr;
  /// Found for a scenario that was changed since: drawn faint until it has been found again.
  bool stale = false;
  /// The scenario that the result belongs to where that is not the present one, by what tells it apart; else empty.
  QString of = {};

  std::vector<ResultPoint> line_points() const;
  /// Does what the scenario's switches deny (core/plan/beyond_switches.h): drawn hollow, and said.
  bool beyond() const;

  friend bool operator==(const ChartSeries&, const ChartSeries&) = default;
};

/// A frontier kept for comparison; outlives the result it came from.
struct PinnedFrontier {
  QString label;  ///< what differs: "NVLink x1.00"
  std::string method;
  std::vector<ResultPoint> points;
  std::string model = {};  ///< name of the model that it says something about; empty: of whichever is open
  ResultPtr result = {};   ///< with the plans of the points; null: of a session, which keeps figures alone

  /// By what is drawn.
  friend bool operator==(const PinnedFrontier& a, const PinnedFrontier& b) {
    return a.label == b.label && a.method == b.method && a.points == b.points && a.model == b.model;
  }
};

/// The lower-left envelope of several methods' points, by rising memory, and whose plan each of them is.
struct ChartEnvelope {
  ResultPtr result;  ///< points and turning point alone
  std::vector<PickedPoint> from;

  friend bool operator==(const ChartEnvelope& a, const ChartEnvelope& b) {
    return a.from == b.from && a.result->points == b.result->points;
  }
};

struct ChartData {
  /// The first frontier is the chart's subject; where there is none (a task graph), the first method that answered.
  std::vector<ChartSeries> series;
  std::vector<PinnedFrontier> pinned;
  std::int64_t memory_limit = 0;  ///< bytes; 0: no line
  bool own_limits = false;        ///< devices differ in memory: no line, each point says itself whether it fits
  QString device;                 ///< "V100-16GB", for the line's caption
  QString title;                  ///< "gpt2 on 1 x 8 V100-16GB", over a saved picture
  Clock clock = Clock::additive;  ///< what the points of series are; under either, placements are simulated

  /// On the simulated clock, where a method may beat what was searched by plain sums: the line is the best of all.
  std::optional<ChartEnvelope> envelope = std::nullopt;
  /// Who gives which part of it: "FT to 34.1 GiB, Fully sharded from there". Empty: there is none.
  QString envelope_words() const;

  const ChartSeries* subject() const;
  /// All series have one marker each: nothing is the chart's line.
  bool markers_only() const;
  const ChartSeries* find(const std::string& method) const;
  /// Another series whose plan fits and takes less time, by the same clock and within the scenario's switches; of
  /// several the fastest. null: there is none, and the subject's fastest plan that fits is that of all.
  const ChartSeries* faster_than_subject() const;

  friend bool operator==(const ChartData&, const ChartData&) = default;
};

/// The best of all methods' points, those of another scenario left out. None if nothing is drawable.
std::optional<ChartEnvelope> lower_left(const ChartData& data);

/// Units and scale shared by everything in one chart. Axis coordinates are memory / bytes_per_unit and
/// time_s * per_second.
struct ChartUnits {
  double bytes_per_unit = 1073741824.0;
  QString memory_name = QStringLiteral("GiB");
  double per_second = 1e3;
  QString time_name = QStringLiteral("ms");

  double x(double bytes) const { return bytes / bytes_per_unit; }
  double y(double seconds) const { return seconds * per_second; }

  /// Figures as the axes have them, and so in one unit all over the chart. `span` is the range of the memory axis in
  /// its own unit: the less it shows, the more digits tell points apart.
  QString memory_number(double bytes, double span) const;
  QString time_number(double seconds) const;
  QString memory_text(double bytes, double span) const;
  QString time_text(double seconds) const;
  /// Signed; as many decimals as a small difference needs.
  QString memory_difference(double bytes) const;
  QString time_difference(double seconds) const;
};
ChartUnits units_for(const ChartData& data);

/// Axis coordinates of a good view.
struct ChartRange {
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
};
/// Everything of the subject, the memory line where it is near, other methods where they fit and are not far off (or do
/// not fit and are near), and of pinned frontiers, which stand there to be compared, the bend as well as the fast end.
/// A steep left end is cut at kSteepest times the best time: with time from zero it would press the rest flat. Empty if
/// there is nothing finite to show.
std::optional<ChartRange> fitted_range(const ChartData& data, const ChartUnits& units, bool others, bool pinned,
                                       bool log_time);
inline constexpr double kSteepest = 5;

/// Whether they differ by a thousandth in memory or in time.
bool told_apart(const ResultPoint& a, const ResultPoint& b);
/// How many of a line's plans can be told apart, each from the one before.
std::size_t distinct_plans(const std::vector<ResultPoint>& points);
/// The place among them, from 1, of the plan at `index`.
std::size_t distinct_place(const std::vector<ResultPoint>& points, std::size_t index);
/// "58", "about 1 900": two digits from a hundred on, since more would pretend.
QString about_plans(std::size_t count);
/// "plan 12 of about 370"; the last ones of 372 are not beyond their number: "plan 371 of 372".
QString place_words(std::size_t place, std::size_t count);

/// Whether a point can be drawn at all.
bool drawable(const ResultPoint& point);

}  // namespace turnpoint::views
