// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/prove_apart.h"

#include "gpu_probe/step/run.h"
#include "gpu_probe/step/run_apart.h"
#include "gpu_probe/step/timed.h"

namespace turnpoint::step {

Expected<std::optional<StepNumerics>> prove_apart(const StepJob& job, Communicator& communicator,
                                                  probe::Transport& transport) {
  const ComputeIn here(in_double());
  StepOptions options = options_of(job);
  options.record = options.one_step = true;
  const auto run = run_apart(job, options, communicator, transport);
  if (!run) {
    communicator.give_up();
    return run.error();
  }
  if (communicator.rank() != 0) return std::optional<StepNumerics>();
  const auto whole = run_whole(in_double(), *job.model, job.plan, options);
  const auto compared = whole ? compare(*job.model, job.plan, *run, *whole) : whole.error();
  if (!compared) {
    communicator.give_up();
    return compared.error();
  }
  return std::optional(numerics_of(*compared));
}

}  // namespace turnpoint::step
