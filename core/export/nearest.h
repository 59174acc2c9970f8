// SPDX-License-Identifier: Apache-2.0
// The plan of a frontier that comes nearest to what an engine can be told: the fastest that fits and that it can run.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/export/format.h"
#include "core/plan/result.h"

namespace turnpoint {

struct NearestPlan {
  std::size_t point = 0;
  EngineFile file;
};

/// In which order points are looked at, the fastest first: those that fit, or all where none does. Points are sorted as
/// a result's are.
std::vector<std::size_t> nearest_order(const std::vector<ResultPoint>& points);

/// A result in which at least these points have their plans.
using OpenPlans = std::function<Expected<ResultPtr>(std::span<const std::size_t>)>;

/// For each engine the first of `order` whose plan it can run; nullopt: it can run none. Plans are opened some at a
/// time, since there may be thousands. Errors: cancelled, those of `open`.
Expected<std::vector<std::optional<NearestPlan>>> nearest_plans(std::span<const ExportFormat* const> engines,
                                                                std::span<const std::size_t> order,
                                                                const OpenPlans& open, const RunContext& context);

/// What the engine is told of a split of the user's own, the only point of `split`, which is offered where it can run
/// no plan of a frontier; nullopt: it cannot run that either, or the split does not fit where plans do (`some_fit`).
std::optional<EngineFile> offered_split(const ExportFormat& engine, const Result& split, bool some_fit);

/// "3.2 % slower, 1.1 GiB more"; "as fast, as much memory".
std::string words_beside(const ResultPoint& taken, const ResultPoint& asked);

}  // namespace turnpoint
