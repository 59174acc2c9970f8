// SPDX-License-Identifier: Apache-2.0
// A step job carried out: the proof, and steps that are timed.
#pragma once

#include <functional>

#include "core/probe/step_job.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/values/options.h"
#include "gpu_probe/transport/rank_links.h"

namespace turnpoint::step {

/// A sign of life: what is being done, which part of it is through, and how many seconds it may go on without another
/// sign before it counts as hung.
using StepProgress = std::function<void(const char* phase, double fraction, double limit_s)>;

StepOptions options_of(const StepJob& job);

/// Why a job is not begun: more ranks than are carried out here, or more memory on each than this machine has.
Expected<void> check_job(const StepJob& job, int ranks);

/// What certainly has to be there on one rank, bytes: parameters with gradient and optimizer state, the largest output.
double least_bytes(const StepJob& job);
/// The same of a placement's devices [first, first + count) together: of the operators that have tasks there.
double least_placed_bytes(const StepJob& job, int first, int count);
/// Error: this machine has less memory than that to give now.
Expected<void> check_room(const StepJob& job, double bytes);

/// What a proof in double says, by the largest errors.
struct Comparison;
StepNumerics numerics_of(const Comparison& compared);

/// The partitioned step, its ranks as threads, against the unpartitioned one, both in double.
Expected<StepNumerics> prove(const StepJob& job);

/// Timed steps of one rank, in step with the others that `communicator` speaks of; a slice is alone. On rank 0 the
/// measurement is that of all ranks. A rank that fails gives up, so that the others do not wait.
Expected<StepMeasurement> measure_steps(const StepJob& job, Communicator& communicator, const StepProgress& progress);

/// One rank's part of all steps in float, in step with the others; with one rank of a job for slices, without them. On
/// rank 0 the measurement is that of all ranks. Error: what about the plan cannot be executed, or that another rank
/// gave up.
Expected<StepMeasurement> measure_rank(const StepJob& job, probe::RankLinks& links, const StepProgress& progress);

}  // namespace turnpoint::step
