// SPDX-License-Identifier: Apache-2.0
// From a ratio plan to the job that runs its training step.
#pragma once

#include "core/plan/ratio_plan.h"
#include "core/validation/step_of.h"

namespace turnpoint {

/// A rank for each device, by the cluster's numbers. Usage error where it cannot be run as it is: one device's part
/// alone, a GPU, and what the overload for sharding plans refuses. What of its cuts cannot be executed the probe says,
/// with the operator's name.
Expected<StepJob> step_job_of(const Scenario& scenario, const RatioPlan& plan, const StepChoice& choice);

}  // namespace turnpoint
