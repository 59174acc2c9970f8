// SPDX-License-Identifier: Apache-2.0
// Where extra memory stops paying (resources/manual/turning-point.md), in numbers and in words.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "core/base/text.h"
#include "core/frontier/pareto.h"
#include "core/plan/result.h"

namespace turnpoint {

namespace {

constexpr double kLeastDistance = 0.05;
constexpr double kLittle = 0.1;  // of the time

// The points that fit, or all of them where none does; of these the ones that are not too slow, if there are any.
std::vector<std::size_t> considered(const std::vector<ResultPoint>& points, double slowest_s) {
  std::vector<std::size_t> indices, fast;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].fits) indices.push_back(i);
  if (indices.empty())
    for (std::size_t i = 0; i < points.size(); ++i) indices.push_back(i);
  for (const std::size_t i : indices)
    if (points[i].time_s <= slowest_s) fast.push_back(i);
  return fast.empty() ? indices : fast;
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
  return memory_words(point) + " \u00b7 " + format_seconds(point.time_s);
}

std::int64_t shown_memory(const ResultPoint& point) {
  return point.simulated_memory_bytes.value_or(point.memory_bytes);
}

// Peaks need not rise with the sums: a difference has its sign.
std::string memory_difference(const ResultPoint& from, const ResultPoint& to) {
  const bool peaks = from.simulated_memory_bytes && to.simulated_memory_bytes;
  const std::int64_t more =
      peaks ? *to.simulated_memory_bytes - *from.simulated_memory_bytes : to.memory_bytes - from.memory_bytes;
  return more < 0 ? "\u2212" + format_bytes(-more) : "+" + format_bytes(more);
}

// Whether the words are about sums of which somebody could expect that they are what a device will need.
bool only_sums(const Result& result) {
  return !result.fits_by_peak && result.clock == Clock::additive && result.scenario &&
         result.scenario->settings.accounting == Accounting::full;
}

std::vector<std::string> that_nothing_fits(const Result& result) {
  const auto& points = result.points;
  const auto less = [](const ResultPoint& a, const ResultPoint& b) { return shown_memory(a) < shown_memory(b); };
  std::vector<ResultPoint> simulated;
  for (const ResultPoint& point : points)
    if (point.simulated_memory_bytes) simulated.push_back(point);
  const auto& among = result.fits_by_peak && !simulated.empty() ? simulated : points;
  return {"No plan" + space_words(result.traits) + " fits " + format_bytes(result.scenario->memory_limit()),
          "The least any plan needs is " + in_words(*std::min_element(among.begin(), among.end(), less))};
}

}  // namespace

std::optional<std::size_t> Result::fastest_that_fits() const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].fits && (!best || points[i].time_s < points[*best].time_s)) best = i;
  return best;
}

std::size_t Result::first_considered() const {
  if (points.empty() || std::isinf(slowest_considered_s)) return 0;
  return considered(points, slowest_considered_s).front();
}

std::optional<std::size_t> find_turning_point(const std::vector<ResultPoint>& points, double slowest_considered_s) {
  return farthest_below_chord(points, considered(points, slowest_considered_s));
}

void find_marks(Result& result) {
  result.turning_point = find_turning_point(result.points, result.slowest_considered_s);
  result.near_best = find_near_best(result.points, result.slowest_considered_s);
}

std::optional<std::size_t> find_near_best(const std::vector<ResultPoint>& points, double slowest_considered_s,
                                          double tolerance) {
  const auto indices = considered(points, slowest_considered_s);
  if (indices.empty()) return std::nullopt;
  double best = points[indices.front()].time_s;
  for (const std::size_t i : indices) best = std::min(best, points[i].time_s);
  for (const std::size_t i : indices)
    if (points[i].time_s <= best * (1 + tolerance)) return i;
  return std::nullopt;
}

double gap_between(const frontier::CostList& bound, const frontier::CostList& achieved) {
  double gap = 0;
  const auto look_at = [&](std::int64_t memory) {
    const double least = frontier::time_at(bound, memory), time = frontier::time_at(achieved, memory);
    if (time > 0 && time < std::numeric_limits<double>::infinity() && least < time)
      gap = std::max(gap, (time - least) / time);
  };
  for (const auto& point : achieved) look_at(point.memory);
  for (const auto& step : bound) look_at(step.memory);
  return gap;
}

double considered_gap(const Result& result) {
  if (result.points.empty()) return 0;
  frontier::CostList achieved;
  for (const ResultPoint& point : result.points) achieved.push_back({point.memory_bytes, point.time_s});
  // Below the memory of the points that are considered, a better one takes no longer than the slowest of them may.
  if (result.points[result.first_considered()].time_s <= result.slowest_considered_s)
    achieved = frontier::unite(achieved, {{0, result.slowest_considered_s}});
  return gap_between(result.lower_bound, achieved);
}

std::optional<double> gap_at(const Result& result, std::size_t point) {
  if (!result.gap || (*result.gap > 0 && result.lower_bound.empty())) return std::nullopt;
  const ResultPoint& at = result.points[point];
  const auto above = std::find_if(result.lower_bound.begin(), result.lower_bound.end(),
                                  [&](const frontier::CostPoint& bound) { return bound.memory > at.memory_bytes; });
  if (above == result.lower_bound.begin() || !(at.time_s > 0)) return 0.0;
  return std::max(0.0, (at.time_s - std::prev(above)->time) / at.time_s);
}

std::string space_words(const MethodTraits& method) { return method.micro_batches ? "" : " without micro-batches"; }

std::string memory_words(const ResultPoint& point) {
  return point.simulated_memory_bytes ? format_bytes(*point.simulated_memory_bytes) + " peak"
                                      : format_bytes(point.memory_bytes);
}

namespace {

std::vector<std::string> turning_point_lines(const Result& result) {
  const auto& points = result.points;
  const auto fastest = result.fastest_that_fits();
  if (!fastest) return that_nothing_fits(result);
  if (points.size() == 1) return {"One plan only"};
  if (result.turning_point && points[*result.turning_point].fits) {
    const ResultPoint &turning = points[*result.turning_point], &best = points[*fastest];
    if (*result.turning_point == *fastest)
      return {"Turning point " + in_words(turning), "It is the fastest plan that fits, too"};
    const double change = best.time_s / turning.time_s - 1;
    // The turning point is a bend, not an end: what lies above it can still be worth having.
    return {"Turning point " + in_words(turning),
            change < -kLittle ? "Above it more memory buys less:" : "Above it more memory buys little:",
            format_percent(change) + " time for " + memory_difference(turning, best)};
  }
  // Memory keeps paying as far as it goes; say so only if the device's size is not what hides the turning point.
  std::vector<ResultPoint> unlimited = points;
  for (auto& point : unlimited) point.fits = true;
  const auto beyond = find_turning_point(unlimited, result.slowest_considered_s);
  if (beyond && !points[*beyond].fits && shown_memory(points[*beyond]) > result.scenario->memory_limit())
    return {"Turning point " + memory_words(points[*beyond]) + " does not fit; best that fits " +
            in_words(points[*fastest])};
  return {"No turning point: memory keeps paying"};
}

}  // namespace

std::vector<std::string> describe_turning_point(const Result& result) {
  if (result.points.empty()) return {"No plan"};
  auto lines = turning_point_lines(result);
  if (only_sums(result) && result.points.size() > 1) lines.emplace_back("By the plain sum; peak not simulated yet");
  return lines;
}

std::vector<std::string> describe_fastest(const Result& result) {
  const auto fastest = result.fastest_that_fits();
  if (!fastest || result.points.size() < 2 || result.turning_point == fastest) return {};
  const ResultPoint& point = result.points[*fastest];
  std::vector<std::string> lines{"Fastest that fits " + in_words(point)};
  if (only_sums(result)) lines.emplace_back("By the plain sum; peak not simulated yet");
  return lines;
}

}  // namespace turnpoint
