// SPDX-License-Identifier: Apache-2.0
// Where extra memory stops paying (design.md 5.7), in numbers and in words.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/base/text.h"
#include "core/plan/result.h"

namespace turnpoint {

namespace {

constexpr double kLeastDistance = 0.05;
constexpr double kLittle = 0.1;  // of the time

// The points that fit, or all of them where none does.
std::vector<std::size_t> considered(const std::vector<ResultPoint>& points) {
  std::vector<std::size_t> fitting, all;
  for (std::size_t i = 0; i < points.size(); ++i) {
    all.push_back(i);
    if (points[i].fits) fitting.push_back(i);
  }
  return fitting.empty() ? all : fitting;
}

std::optional<std::size_t> farthest_below_chord(const std::vector<ResultPoint>& points,
                                                const std::vector<std::size_t>& indices) {
  if (indices.size() < 3) return std::nullopt;
  const ResultPoint &first = points[indices.front()], &last = points[indices.back()];
  const double memory_range = static_cast<double>(last.memory_bytes - first.memory_bytes);
  const double time_range = first.time_s - last.time_s;
  if (!(memory_range > 0) || !(time_range > 0)) return std::nullopt;
  std::optional<std::size_t> best;
  double best_distance = 0;
  for (const std::size_t i : indices) {
    const double x = static_cast<double>(points[i].memory_bytes - first.memory_bytes) / memory_range;
    const double y = (points[i].time_s - last.time_s) / time_range;
    const double distance = (1 - x - y) / std::sqrt(2.0);  // from the chord (0, 1) to (1, 0)
    if (distance > best_distance) {
      best = i;
      best_distance = distance;
    }
  }
  return best_distance < kLeastDistance ? std::nullopt : best;
}

std::string in_words(const ResultPoint& point) {
  return format_bytes(point.memory_bytes) + " \u00b7 " + format_seconds(point.time_s);
}

}  // namespace

std::optional<std::size_t> Result::fastest_that_fits() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].fits && (!best || points[i].time_s < points[*best].time_s)) best = i;
  return best;
}

std::optional<std::size_t> find_turning_point(const std::vector<ResultPoint>& points) {
  return farthest_below_chord(points, considered(points));
}

std::optional<std::size_t> find_near_best(const std::vector<ResultPoint>& points, double tolerance) {
  const auto indices = considered(points);
  if (indices.empty()) return std::nullopt;
  double best = points[indices.front()].time_s;
  for (const std::size_t i : indices) best = std::min(best, points[i].time_s);
  for (const std::size_t i : indices)
    if (points[i].time_s <= best * (1 + tolerance)) return i;
  return std::nullopt;
}

std::optional<double> gap_at(const Result& result, std::size_t point) {
  if (!result.gap || (*result.gap > 0 && result.lower_bound.empty())) return std::nullopt;
  const ResultPoint& at = result.points[point];
  const auto above = std::find_if(result.lower_bound.begin(), result.lower_bound.end(),
                                  [&](const frontier::CostPoint& bound) { return bound.memory > at.memory_bytes; });
  if (above == result.lower_bound.begin() || !(at.time_s > 0)) return 0.0;
  return std::max(0.0, (at.time_s - std::prev(above)->time) / at.time_s);
}

std::vector<std::string> describe_turning_point(const Result& result) {
  const auto& points = result.points;
  if (points.empty()) return {"No plan"};
  const auto fastest = result.fastest_that_fits();
  if (!fastest) {
    std::vector<std::string> lines = {"No plan fits " + format_bytes(result.scenario->memory_limit())};
    lines.push_back("The least any plan needs is " + in_words(points.front()));
    return lines;
  }
  if (points.size() == 1) return {"One plan only"};
  if (result.turning_point && points[*result.turning_point].fits) {
    const ResultPoint &turning = points[*result.turning_point], &best = points[*fastest];
    const double change = best.time_s / turning.time_s - 1;
    // The turning point is a bend, not an end: what lies above it can still be worth having.
    return {"Turning point " + in_words(turning),
            change < -kLittle ? "Above it more memory buys less:" : "Above it more memory buys little:",
            format_percent(change) + " time for +" + format_bytes(best.memory_bytes - turning.memory_bytes)};
  }
  // Memory keeps paying as far as it goes; say so only if the device's size is not what hides the turning point.
  std::vector<ResultPoint> unlimited = points;
  for (auto& point : unlimited) point.fits = true;
  if (const auto beyond = find_turning_point(unlimited); beyond && !points[*beyond].fits)
    return {"Turning point " + format_bytes(points[*beyond].memory_bytes) + " does not fit; best that fits " +
            in_words(points[*fastest])};
  return {"No turning point: memory keeps paying"};
}

}  // namespace turnpoint
