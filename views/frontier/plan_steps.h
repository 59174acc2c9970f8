// SPDX-License-Identifier: Apache-2.0
// From plan to plan by key, along a line that may have hundreds of thousands of them.
#pragma once

#include <QPointF>
#include <cstddef>
#include <functional>
#include <vector>

#include "core/plan/result.h"

namespace turnpoint::views {

/// Nearer plans look the same.
inline constexpr double kVisiblyApart_px = 2;

/// The plan that is `steps` steps from `from` among those that are drawn (on the simulated clock not all are). A step
/// goes to the next plan that `pixel` puts `apart` or more away, or to the last one where all that follow are nearer;
/// with `apart` 0 to the very next. Negative steps go towards index 0.
std::size_t stepped_plan(const std::vector<ResultPoint>& points, std::size_t from, int steps, double apart,
                         const std::function<QPointF(const ResultPoint&)>& pixel);

}  // namespace turnpoint::views
