// SPDX-License-Identifier: Apache-2.0
// Predicted against measured for plans of a result, one after the other, and calibration with what they showed: what
// command line and window do alike.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/plan/result.h"
#include "core/probe/step_job.h"
#include "core/validation/run_needs.h"
#include "core/validation/step_of.h"
#include "core/validation/validation_report.h"

namespace turnpoint {

/// So many points spread evenly over the result's, least memory and least time among them, all where there are fewer;
/// `chosen` takes the place of the nearest. One: `chosen` alone. Rising.
std::vector<std::size_t> sampled_points(const Result& result, std::size_t count, std::size_t chosen);

/// "ft, point 3: 120 MiB, 41 ms".
std::string point_label(const Result& result, std::size_t point);

/// Runs one job; measure_step() with a probe, or a stand-in.
using StepRunner = std::function<Expected<StepMeasurement>(const StepJob& job, const RunContext& context)>;

struct ValidatedPlan {
  std::size_t point = 0;
  AnyPlan plan;
  Plan ran;  ///< what the step job says of operators: the plan, or of a placement unsplit_plan()
  StepMeasurement measurement;
  ValidationReport report;
};

/// Usage error where the point's plan cannot be run (what step_job_of() refuses, or check_room() on `host`); else the
/// runner's. `date` as ISO 8601; `host`: null: what the run would take is not looked at.
Expected<ValidatedPlan> validate_point(const Result& result, std::size_t point, const StepChoice& choice,
                                       const std::string& date, const StepRunner& runner, const RunContext& context,
                                       const HostRoom* host = nullptr);

/// Runs the plan once more, without a proof, and keeps the run with the shorter step: where the system has put two ranks
/// on one core, a whole run is slow. Whoever compares plans runs each of them once before any of them again: a machine
/// that is slow for a while is then slow for all alike. Errors: the runner's; the plan stays as it was.
Expected<void> run_again(const Result& result, ValidatedPlan& plan, const StepChoice& choice, const StepRunner& runner,
                         const RunContext& context);

struct CalibratedPlans {
  ClusterPtr cluster;  ///< with what all plans showed
  /// The same measurements beside new predictions: of three plans or more each one is predicted from what the others
  /// showed; of fewer, from its own (a note says so).
  std::vector<ValidationReport> reports;
  std::vector<std::string> notes;
};
/// Error: nothing was measured that a profile could take.
Expected<CalibratedPlans> calibrate_plans(const Scenario& scenario, const std::vector<ValidatedPlan>& plans);

}  // namespace turnpoint
