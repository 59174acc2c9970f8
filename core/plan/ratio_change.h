// SPDX-License-Identifier: Apache-2.0
// What a ratio plan would be with another ratio at one cut.
#pragma once

#include "core/base/expected.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// The plan whose cut of this number gives its first half `ratio`, priced. Shares of the cut move with it: by the same
/// factor of first to second half, so that an operator whose share was the ratio has the new one. Below, every operator
/// keeps its parts of what there is then, in whole units; a loop of one unit is not cut any more. Usage error: no such
/// cut, or a ratio that is not between 0 and 1.
Expected<RatioPlan> with_ratio(const Scenario& scenario, const RatioPlan& plan, std::uint32_t cut, double ratio);

}  // namespace turnpoint
