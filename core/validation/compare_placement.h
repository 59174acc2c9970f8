// SPDX-License-Identifier: Apache-2.0
// What was predicted of a placed step beside what was measured of it.
//
// Predicted: the simulated schedule of the placement (resources/manual/simulator.md). Execution is the computing of the
// device that computes longest, network the rest of the step: waiting for other devices, and for tensors on their way.
// Collectives are the transfers, each by itself. Bytes sent are those of all transfers together.
#pragma once

#include "core/base/expected.h"
#include "core/plan/placement_plan.h"
#include "core/validation/compare.h"

namespace turnpoint {

/// Error: the measurement is not one of this placement.
Expected<ValidationReport> compare_placement(const Scenario& scenario, const PlacementPlan& plan,
                                             const StepMeasurement& measurement, const CompareLabels& labels);

}  // namespace turnpoint
