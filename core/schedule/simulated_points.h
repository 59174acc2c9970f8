// SPDX-License-Identifier: Apache-2.0
// Points of a result on the simulated clock (core/schedule/plan_schedule.h), and what a chart draws of them.
//
// The simulated image of a frontier need not be a frontier: overlap and liveness favour some plans more than others, so
// that points change places. What is drawn is therefore every simulated point as a marker, in the order of the additive
// frontier, and their own Pareto subset as the line. A plan that the additive search passed over may be better on this
// clock; the line is the best of the plans that were found, not of all plans.
#pragma once

#include <span>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/schedule/plan_schedule.h"

namespace turnpoint {

/// One per index, in their order; on as many threads as `context` says, the same answer on any number. A result of a
/// method that places tasks is on the simulated clock already: its points as they are. Errors: cancelled; a result
/// without plans; an index that is not there.
Expected<std::vector<SimulatedCost>> simulate_points(const Result& result, std::span<const std::size_t> indices,
                                                     const RunContext& context);

/// The result with simulated_time_s and simulated_memory_bytes of all its points.
Expected<ResultPtr> with_simulated_points(const ResultPtr& result, const RunContext& context);

struct SimulatedCurve {
  std::vector<std::size_t> index;   ///< of the result's points, rising
  std::vector<SimulatedCost> cost;  ///< of each
  std::vector<std::size_t> line;    ///< entries of `index` that no other one beats, by rising memory
  bool complete = false;            ///< every point of the result is there
};

/// The points to simulate where a result has too many to draw: at most `most` (at least 8), the first, the last, the
/// turning point, near_best and the fastest that fits among them, the others evenly spread along the drawn curve (equal
/// lengths of it, both axes scaled to 0...1).
std::vector<std::size_t> spread_points(const Result& result, std::size_t most);

/// Of at most `most` points, spread as above.
Expected<SimulatedCurve> simulated_curve(const Result& result, std::size_t most, const RunContext& context);

}  // namespace turnpoint
