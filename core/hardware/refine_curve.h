// SPDX-License-Identifier: Apache-2.0
// Which size of a measured curve to measure next: where the curve, read between its points, is off.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/hardware/curve.h"

namespace turnpoint {

struct TimedSize {
  std::int64_t bytes = 0;
  double time_s = 0;
  double spread = 0;  ///< (q3 - q1) / median of the repeated times: what is closer than that cannot be told apart
};

struct RefineRule {
  double tolerance = 0.1;  ///< relative error of a point against the line between its neighbours
  std::int64_t unit = 4;   ///< sizes are multiples of this many bytes
  double narrowest = 1.1;  ///< neighbours closer than this ratio are not split
  Interpolation interpolation = Interpolation::time;
};

struct Midpoint {
  std::int64_t bytes = 0;
  double score = 0;  ///< the larger the more urgent; comparable between curves
};

/// The geometric middle of the neighbours between which the curve is least known, or nothing once every point agrees
/// with the line between its own two neighbours within the tolerance or within its noise. Each inner point is read
/// from its neighbours as if it had not been measured: two neighbours that are both off have a step or a bend between
/// them. `curve`: rising, distinct sizes.
std::optional<Midpoint> next_midpoint(std::span<const TimedSize> curve, const RefineRule& rule);

}  // namespace turnpoint
