// SPDX-License-Identifier: Apache-2.0
// What running a plan's step would take on this machine, worked out before anything is started: seconds and memory, and
// whether the machine and the run's budget have them.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"
#include "core/plan/any_plan.h"
#include "core/probe/step_job.h"
#include "core/scenario/scenario.h"
#include "core/validation/step_of.h"

namespace turnpoint {

/// The machine that CPU ranks would run on.
struct HostRoom {
  std::int64_t memory_bytes = 0;  ///< that can be had now; 0: not known, nothing is refused for it
  int cores = 1;
  ClusterPtr hardware;  ///< as measured, or assumed; null: a plan for other hardware is not priced again
};
/// This machine now; its hardware is `local` (core/hardware/probe_local.h).
HostRoom this_host();

/// Seconds and bytes on the CPU of one machine.
struct RunNeeds {
  double step_s = 0;       ///< one timed step, as predicted for this machine
  double least_s = 0;      ///< warm-up and the fewest steps that are timed
  double ranks_bytes = 0;  ///< predicted peaks of all ranks together, in float
  double proof_bytes = 0;  ///< of the proof, which is over before the ranks begin; 0 where it is left out
  double bytes() const { return ranks_bytes > proof_bytes ? ranks_bytes : proof_bytes; }
};

/// A plan priced for hardware that cannot be this machine is priced for `host.hardware` instead. Where ranks outnumber
/// cores they take turns. Error: the plan is not one of the scenario's model.
Expected<RunNeeds> run_needs(const Scenario& scenario, const Plan& plan, const StepChoice& choice,
                             const HostRoom& host);

Expected<RunNeeds> run_needs(const Scenario& scenario, const PlacementPlan& plan, const StepChoice& choice,
                             const HostRoom& host);
Expected<RunNeeds> run_needs(const Scenario& scenario, const RatioPlan& plan, const StepChoice& choice,
                             const HostRoom& host);
Expected<RunNeeds> run_needs(const Scenario& scenario, const AnyPlan& plan, const StepChoice& choice,
                             const HostRoom& host);

/// Usage error that says what is needed, what there is and what to change. Nothing is refused for a backend other than
/// the CPU.
Expected<void> check_room(const RunNeeds& needs, const StepChoice& choice, const HostRoom& host);

/// A data sheet's hardware, which no CPU is.
bool is_preset(const std::string& hardware);

}  // namespace turnpoint
