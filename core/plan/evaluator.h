// SPDX-License-Identifier: Apache-2.0
// The independent evaluator: recomputes a plan's cost from its configurations, layouts and paths alone, with none of
// the search's tables. Every method's plan is costed here (resources/manual/costs.md).
#pragma once

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Checks that the plan is legal for the scenario (every consumer gets the layout it reads, no partial sums escape,
/// every kept copy exists) and sums its cost from first principles. Error: what is wrong with the plan, or that it is a
/// pipeline, whose cost is no sum.
Expected<CostBreakdown> evaluate_plan(const Scenario& scenario, const Plan& plan);

}  // namespace turnpoint
