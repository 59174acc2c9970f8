// SPDX-License-Identifier: Apache-2.0
// From a placement of a model's training graph to the job that runs it, and the same placement under other prices.
#pragma once

#include "core/base/expected.h"
#include "core/plan/placement_plan.h"
#include "core/validation/step_of.h"

namespace turnpoint {

/// Each device runs its tasks in the order in which the simulator runs them. Usage error where it cannot be run as it
/// is: a task graph that no model was the source of, parts of time steps or micro-batches as tasks of their own, one
/// device's part alone, and what the overload for sharding plans refuses.
Expected<StepJob> step_job_of(const Scenario& scenario, const PlacementPlan& plan, const StepChoice& choice);

/// The placement on the training graph that `scenario` gives of the same model: with the times and links of other
/// hardware, everything simulated anew. Error: the graph has other tasks.
Expected<PlacementPlanPtr> placed_again(const Scenario& scenario, const PlacementPlan& plan);

}  // namespace turnpoint
