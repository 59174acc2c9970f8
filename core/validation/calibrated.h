// SPDX-License-Identifier: Apache-2.0
// Measured steps fed back into a hardware profile, so that these and other plans are predicted with the times that
// operators and collectives took while a plan ran.
#pragma once

#include <string>
#include <vector>

#include "core/plan/plan.h"
#include "core/probe/step_job.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// A plan that was run, what was measured, and the scenario whose model and mesh it is of.
struct CalibrationRun {
  const Scenario* scenario = nullptr;
  const Plan* plan = nullptr;
  const StepMeasurement* measurement = nullptr;
  int micro_batches = 1;  ///< of the step; scenario and plan are those of one
};

/// The cluster, knowing what these runs took:
///  - operators: the time of every signature (kind, local sizes, phase) that was run. Signatures that stand for
///    operators of different work are left out, fits tell these apart. For other sizes constants per kind: launch, FLOP
///    and bytes (core/cost/calibration.h) where four or more different sizes were run, else one rate;
///  - the update of parameters, which has no FLOP: launch and bytes from two sizes on that lie apart, else one rate;
///  - collectives: the time of every kind, group and size that was run, in the place of earlier samples from half the
///    least to twice the largest of these sizes; for other groups latency and bandwidth of the link level, by least
///    squares. Transfers of placements inside a node count as sends between two devices.
/// Earlier samples and fits of the kinds that were run are dropped: they were made by kernels running alone. Times of
/// slices serve operators alone. Nothing measured: the cluster as it is. `notes` gets what was done, a sentence each.
ClusterPtr calibrated_with(const ClusterPtr& cluster, const std::vector<CalibrationRun>& runs,
                           std::vector<std::string>& notes);

}  // namespace turnpoint
