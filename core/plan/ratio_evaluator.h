// SPDX-License-Identifier: Apache-2.0
// What a ratio plan costs, worked out from its shares alone: every device's own work, by its own speed and memory
// bandwidth; what the halves of every cut exchange; what each device holds (ratio_charges.h). An operator takes as long
// as on its slowest device.
#pragma once

#include "core/plan/ratio_plan.h"

namespace turnpoint {

/// The same plan with all its costs. Errors: a tree that does not hold every device of the cluster once, cuts that do
/// not go with it, shares of loops that an operator does not have, that may not be split, or that leave a part nothing,
/// each named; a scenario in 8 bits, whose casts are not priced here.
Expected<RatioPlan> evaluate_ratio_plan(const Scenario& scenario, RatioPlan plan);

}  // namespace turnpoint
