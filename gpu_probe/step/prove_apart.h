// SPDX-License-Identifier: Apache-2.0
// The proof where ranks are processes, perhaps on several hosts: what they compute is exchanged over what carries the
// timed steps too.
#pragma once

#include <optional>

#include "core/probe/step_job.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::step {

/// All ranks call this; each runs its part of the step once, recording. Rank 0 gets what all have recorded, computes
/// the unpartitioned step and compares; the others get nothing. A rank that fails gives up, so that none waits.
Expected<std::optional<StepNumerics>> prove_apart(const StepJob& job, Communicator& communicator,
                                                  probe::Transport& transport);

}  // namespace turnpoint::step
