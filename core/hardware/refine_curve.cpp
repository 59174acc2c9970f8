// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/refine_curve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace turnpoint {

namespace {

/// Between two neighbours that are both off lies what is sought; the one nearer to it shows less of it.
constexpr double kLesserShare = 1.0 / 3;

/// Relative errors of inner points read from their neighbours, 0 where noise explains them; ends take their
/// neighbour's.
std::vector<double> errors_of(std::span<const TimedSize> curve, Interpolation interpolation) {
  std::vector<double> errors(curve.size(), 0);
  for (std::size_t i = 1; i + 1 < curve.size(); ++i) {
    const std::array<CurvePoint, 2> ends{CurvePoint{static_cast<double>(curve[i - 1].bytes), curve[i - 1].time_s},
                                         CurvePoint{static_cast<double>(curve[i + 1].bytes), curve[i + 1].time_s}};
    const double read = curve_time(ends, static_cast<double>(curve[i].bytes), interpolation);
    const double error = std::abs(read - curve[i].time_s) / curve[i].time_s;
    const double noise = std::max({curve[i - 1].spread, curve[i].spread, curve[i + 1].spread});
    errors[i] = error > noise ? error : 0;
  }
  if (curve.size() > 2) {
    errors.front() = errors[1];
    errors.back() = errors[curve.size() - 2];
  }
  return errors;
}

}  // namespace

std::optional<Midpoint> next_midpoint(std::span<const TimedSize> curve, const RefineRule& rule) {
  const auto errors = errors_of(curve, rule.interpolation);
  std::optional<Midpoint> best;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const double more = std::max(errors[i], errors[i + 1]), less = std::min(errors[i], errors[i + 1]);
    if (more <= rule.tolerance || less <= kLesserShare * rule.tolerance) continue;
    const auto low = static_cast<double>(curve[i].bytes), high = static_cast<double>(curve[i + 1].bytes);
    if (high < low * rule.narrowest) continue;
    const auto unit = static_cast<double>(rule.unit);
    const auto middle = static_cast<std::int64_t>(std::llround(std::sqrt(low * high) / unit)) * rule.unit;
    if (middle <= curve[i].bytes || middle >= curve[i + 1].bytes) continue;
    const double score = more * std::log(high / low);
    if (!best || score > best->score) best = Midpoint{middle, score};
  }
  return best;
}

}  // namespace turnpoint
