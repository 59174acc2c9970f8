// SPDX-License-Identifier: Apache-2.0
// From a chosen plan to the job that runs its training step.
#pragma once

#include "core/base/expected.h"
#include "core/plan/any_plan.h"
#include "core/probe/step_job.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// More CPU ranks than this would only take turns on the cores of one machine.
inline constexpr int kMostCpuRanks = 8;

struct StepChoice {
  ProbeBackend backend = ProbeBackend::cpu;  ///< `automatic`: what the probe finds; checks for the CPU do not apply
  int device = 0;
  CpuKernels cpu_kernels = CpuKernels::automatic;
  StepMode mode = StepMode::ranks;
  int slice_device = 0;
  bool prove = true;
  int warm_up = 2, steps = 10;
  double budget_s = 60;
  std::uint64_t seed = 1;
  std::vector<double> slow;  ///< ratio plans: by rank, how many times as long it is to take to compute (StepJob::slow)
  int most_ranks = kMostCpuRanks;  ///< more where several hosts run them
};

/// Usage error where the plan cannot be run as it is: stages or layers that run again, 16 bits on the CPU, an optimizer
/// without arithmetic in the probe, more ranks than kMostCpuRanks, a slice of a device that is not there.
Expected<StepJob> step_job_of(const Scenario& scenario, const Plan& plan, const StepChoice& choice);
/// Of any kind; a placement as step_job_of() in placement_step.h has it, a ratio plan as in ratio_step.h.
Expected<StepJob> step_job_of(const Scenario& scenario, const AnyPlan& plan, const StepChoice& choice);

/// The same for a plan whose ranks are so many (of a placement its devices, whatever the plan's mesh).
/// `may_take_norms`: its updates may be those of LARS, LAMB and Adafactor.
Expected<StepJob> step_job_of(const Scenario& scenario, const Plan& plan, const StepChoice& choice, int devices,
                              bool may_take_norms);

}  // namespace turnpoint
