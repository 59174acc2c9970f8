// SPDX-License-Identifier: Apache-2.0
// What was predicted of a plan's step beside what was measured of it.
//
// Predicted: the plan's own items, on the additive clock (core/plan/plan.h), since ranks compute and exchange one after
// the other. Memory per kind is that clock's; their sum knows no liveness: what is held at once stays below it, since
// kept copies go while gradients come. The peak is that of the plan's items in the order of their issue, one after the
// other (core/schedule/plan_schedule.h has the rules of what lives how long).
//
// Measured: the lower quartile of the timed steps on CPU ranks, the median on GPUs: the statistics that profiles are
// made of as well. Ranks that share cores with other programs wait for each other at every exchange, so what disturbs
// one step only ever adds; the least of few steps would be a matter of luck, and lie outside its own quartiles.
// Execution and network are sums over operators and collectives, theirs being those of the slowest rank.
//
// What was not measured is modelled and has no measured value: all exchanges of a slice, and what crosses the host
// link.
#pragma once

#include <array>
#include <vector>

#include "core/base/expected.h"
#include "core/probe/step_job.h"
#include "core/scenario/scenario.h"
#include "core/validation/validation_report.h"

namespace turnpoint {

struct CompareLabels {
  std::string plan;  ///< "ft, point 3: 120 MiB, 41 ms"
  std::string date;  ///< ISO 8601, UTC
  bool calibrated = false;
};

/// A value that was not measured.
ComparedValue modelled(std::string name, double predicted);

/// The statistic of a measured time that reports compare with.
double measured_seconds(const StepMeasurement& measurement, const Spread& spread);

/// `plan` priced for `scenario`. Error: the plan is not one of the scenario's model.
Expected<ValidationReport> compare_step(const Scenario& scenario, const Plan& plan, const StepMeasurement& measurement,
                                        const CompareLabels& labels);

/// One row per phase that takes time: `predicted` by StepPhase, measured the sums of the operators'.
std::vector<ComparedValue> compare_phases(const std::array<double, 4>& predicted, const StepMeasurement& measurement);

/// The proof's part of a report: its largest errors, whatever they are of.
void set_numerics(ValidationReport& report, const StepMeasurement& measurement);

/// The most bytes that one device holds when the plan's items run in the order of their issue, one after the other.
Expected<std::int64_t> serial_peak(const Scenario& scenario, const Plan& plan);

}  // namespace turnpoint
