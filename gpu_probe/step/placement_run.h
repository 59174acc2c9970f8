// SPDX-License-Identifier: Apache-2.0
// A placed step on ranks that are threads of this process, its proof, and timed steps on ranks that are processes.
#pragma once

#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

/// A placed step of all ranks.
struct PlacementRun {
  StepRun step;                        ///< what was recorded; `traffic` stays empty
  std::vector<double> received_bytes;  ///< by transfer
};

namespace in_double {
/// One thread per device of the job's placement; `steps` one after the other, the last one's are reported. Error: of
/// the first rank that found one.
Expected<PlacementRun> run_placement(const StepJob& job, const StepOptions& options, int steps = 1);
}  // namespace in_double
namespace in_float {
Expected<PlacementRun> run_placement(const StepJob& job, const StepOptions& options, int steps = 1);
/// One rank's part of all steps of a job with a placement, as measure_rank().
Expected<StepMeasurement> measure_placed_rank(const StepJob& job, probe::SharedRegion& region, int rank,
                                              const StepProgress& progress);
}  // namespace in_float
namespace in_double {
Expected<StepMeasurement> measure_placed_rank(const StepJob& job, probe::SharedRegion& region, int rank,
                                              const StepProgress& progress);
}  // namespace in_double
/// On the GPU that this process has opened, whose memory and stream all ranks share.
namespace in_cuda {
Expected<PlacementRun> run_placement(const StepJob& job, const StepOptions& options, int steps = 1);
/// All ranks' steps.
Expected<StepMeasurement> measure_placement(const StepJob& job, const StepProgress& progress);
}  // namespace in_cuda

/// As check_job(), of a job with a placement.
Expected<void> check_placement_job(const StepJob& job);

/// Error: something that the whole step has was not computed by the placed one.
Expected<void> check_all_computed(const StepJob& job, const Comparison& compared, const StepRun& whole);

/// The placed step, its ranks as threads, against the whole model on one rank, both in double.
Expected<StepNumerics> prove_placement(const StepJob& job);

}  // namespace turnpoint::step
