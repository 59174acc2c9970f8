// SPDX-License-Identifier: Apache-2.0
// A whole step on ranks that are processes, with all that they recorded brought together.
#pragma once

#include "core/probe/step_job.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::step {

/// All ranks call this; each runs its part of the step once. Rank 0 gets what all have recorded, in their order; the
/// others get nothing. Error: of this rank, or that another one gave up; whoever gets it tells the others.
Expected<StepRun> run_apart(const StepJob& job, const StepOptions& options, Communicator& communicator,
                            probe::Transport& transport);

/// All ranks' reports brought together: on rank 0 in their order, elsewhere nothing. Error: another rank gave up.
Expected<StepRun> gathered(StepReport mine, const Model& model, int rank, int ranks, probe::Transport& transport);

}  // namespace turnpoint::step
