// SPDX-License-Identifier: Apache-2.0
// Which plans of a result truly fit: by the simulated peak of their step (core/schedule/plan_schedule.h), which what is
// computed again, gathered or on its way puts above the plain sum of ResultPoint::memory_bytes, up to several times.
//
// A frontier has up to hundreds of thousands of plans, so few are simulated: those that are named (turning point,
// fastest that fits, both ends, least memory near the best time), and where one of them needs more than there is, plans
// spread along the curve and those between the last that fits and the first that does not. Peaks need not rise along
// the curve: what is named always has a simulated peak; what lies between is taken to fit if its nearest simulated
// neighbours do. Where none of these fits, further plans are simulated until one does or a number of them is spent; a
// frontier that has no more plans than that is simulated whole, so that "nothing fits" is then certain of its plans.
#pragma once

#include <functional>
#include <span>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/schedule/plan_schedule.h"

namespace turnpoint {

/// Simulates the plans of these indices, in their order.
using PlanSimulator = std::function<Expected<std::vector<SimulatedCost>>(std::span<const std::size_t>)>;

/// Whether peaks say what fits: not where the clock is simulated already, nor under the papers' accounting, which
/// compares plain sums with plain sums, nor without plans.
bool can_judge_fits(const Result& result);

/// Plans that are simulated besides, while none is known that fits: a quarter of a second for a network of a thousand
/// operators.
inline constexpr std::size_t kUntilAnyFits = 256;

/// The result with `fits`, `turning_point` and `near_best` by simulated peaks and `fits_by_peak` set; the points that
/// were simulated have simulated_time_s and simulated_memory_bytes. Indices stay what they were. Peaks that `before`
/// knows are taken from it: it is a judged result of the same plans under another memory limit, or null. Result::plans
/// tells whether it is. Errors: the simulator's; cancelled.
Expected<ResultPtr> judge_fits(const ResultPtr& result, const PlanSimulator& simulate, const Result* before = nullptr,
                               std::size_t until_any_fits = kUntilAnyFits);

/// With the plans' own simulation, on as many threads as `context` says.
Expected<ResultPtr> judge_fits(const ResultPtr& result, const RunContext& context, const Result* before = nullptr,
                               std::size_t until_any_fits = kUntilAnyFits);

/// How many points have a simulated peak.
std::size_t simulated_plans(const Result& result);

/// The smallest simulated peak of a judged result, as an index; nullopt where no point was simulated.
std::optional<std::size_t> least_peak(const Result& result);

}  // namespace turnpoint
