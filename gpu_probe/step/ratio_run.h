// SPDX-License-Identifier: Apache-2.0
// A ratio plan's step on ranks that are threads of this process, its proof, and timed steps on ranks of any kind.
#pragma once

#include "gpu_probe/step/ratio_rank.h"
#include "gpu_probe/step/run.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

/// A step of all ranks.
struct RatioRun {
  StepRun step;                                 ///< what was recorded; `traffic` of its ranks stays empty
  std::vector<RatioLine> lines;                 ///< what messages were about
  std::vector<std::vector<RatioTraffic>> came;  ///< [rank][line]
};

/// One thread per rank of the job's ratio plan; `steps` one after the other, the last one's are reported. Error: of the
/// first rank that found one.
Expected<RatioRun> run_ratio(const Arithmetic& in, const StepJob& job, const StepOptions& options, int steps = 1);

/// As check_job(), of a job with a ratio plan on so many ranks of this host: that its plan can be executed, too.
Expected<void> check_ratio_job(const StepJob& job, int ranks);

/// Both recorded: an error where the split step has left out or cannot sum up something that the whole one has.
Expected<Comparison> compare_ratio(const StepJob& job, RatioRun& run, const StepRun& whole);

/// The split step, its ranks as threads, against the whole model on one rank, both in double.
Expected<StepNumerics> prove_ratio(const StepJob& job);

/// One rank's part of all steps of a job with a ratio plan, in float, as measure_rank().
Expected<StepMeasurement> measure_ratio_rank(const StepJob& job, probe::RankLinks& links, const StepProgress& progress);
/// The same in step with the others that `communicator` speaks of. A rank that fails gives up.
Expected<StepMeasurement> measure_ratio_steps(const StepJob& job, Communicator& communicator,
                                              const StepProgress& progress);

}  // namespace turnpoint::step
