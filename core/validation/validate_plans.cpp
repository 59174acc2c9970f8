// SPDX-License-Identifier: Apache-2.0
#include "core/validation/validate_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/text.h"
#include "core/plan/reprice.h"
#include "core/validation/calibrated.h"
#include "core/validation/compare.h"

namespace turnpoint {

namespace {

constexpr std::size_t kHeldOut = 3;  ///< plans from which each is predicted without its own measurement

/// A data sheet's device cannot be what CPU ranks ran on.
bool is_preset(const std::string& hardware) {
  return hardware.find('+') != std::string::npos || cluster_preset(hardware).has_value();
}

}  // namespace

std::vector<std::size_t> sampled_points(const Result& result, std::size_t count, std::size_t chosen) {
  const std::size_t points = result.points.size();
  std::vector<std::size_t> sample;
  if (points == 0) return sample;
  chosen = std::min(chosen, points - 1);
  count = std::min(count, points);
  if (count <= 1) return {chosen};
  for (std::size_t i = 0; i < count; ++i) sample.push_back((i * (points - 1) + (count - 1) / 2) / (count - 1));
  if (std::find(sample.begin(), sample.end(), chosen) == sample.end()) {
    const auto distance = [&](std::size_t p) { return p > chosen ? p - chosen : chosen - p; };
    *std::min_element(sample.begin(), sample.end(),
                      [&](std::size_t a, std::size_t b) { return distance(a) < distance(b); }) = chosen;
  }
  return sample;
}

std::string point_label(const Result& result, std::size_t point) {
  const ResultPoint& at = result.points.at(point);
  return fmt::format("{}{}{}, point {}: {}, {}", result.method, result.method_options.empty() ? "" : ":",
                     result.method_options, point, format_bytes(at.memory_bytes), format_seconds(at.time_s));
}

StepRunner best_of(int runs, StepRunner runner) {
  return [runs, runner = std::move(runner)](const StepJob& job, const RunContext& context) {
    auto best = runner(job, context);
    StepJob again = job;
    again.prove = false;
    for (int run = 1; run < runs && best; ++run) {
      auto other = runner(again, context);
      if (!other) return other;
      if (other->step.min_s >= best->step.min_s) continue;
      other->numerics = best->numerics;
      best = std::move(other);
    }
    return best;
  };
}

Expected<ValidatedPlan> validate_point(const Result& result, std::size_t point, const StepChoice& choice,
                                       const std::string& date, const StepRunner& runner, const RunContext& context) {
  if (!result.plans || point >= result.points.size()) return usage_error("the result has no such plan");
  if (result.plans->placement(point))
    return usage_error("the point is a placement of tasks; only sharding plans can be run and compared");
  const Scenario& scenario = *result.scenario;
  ValidatedPlan made;
  made.point = point;
  made.plan = result.plans->plan(point);
  const auto job = step_job_of(scenario, made.plan, choice);
  if (!job) return job.error();
  auto measured = runner(*job, context);
  if (!measured) return measured.error();
  made.measurement = std::move(*measured);
  auto report = compare_step(scenario, made.plan, made.measurement, {point_label(result, point), date, false});
  if (!report) return report.error();
  made.report = std::move(*report);
  if (made.measurement.backend == "cpu" && is_preset(scenario.hardware))
    made.report.notes.insert(made.report.notes.begin(),
                             fmt::format("predicted for {}, which is not what ran: the CPU of this machine did; search "
                                         "with --hardware local, or calibrate",
                                         scenario.hardware));
  return made;
}

Expected<CalibratedPlans> calibrate_plans(const Scenario& scenario, const std::vector<ValidatedPlan>& plans) {
  CalibratedPlans made;
  const auto cluster_without = [&](std::size_t left_out, std::vector<std::string>& notes) {
    std::vector<CalibrationRun> runs;
    for (std::size_t p = 0; p < plans.size(); ++p)
      if (p != left_out) runs.push_back({&scenario, &plans[p].plan, &plans[p].measurement});
    return calibrated_with(scenario.cluster, runs, notes);
  };
  made.cluster = cluster_without(plans.size(), made.notes);
  if (made.cluster == scenario.cluster)
    return Error{ErrorCode::device, "nothing was measured that a profile could take", {}, {}};
  const bool held_out = plans.size() >= kHeldOut;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    Scenario known = scenario;
    std::vector<std::string> ignored;
    known.cluster = held_out ? cluster_without(p, ignored) : made.cluster;
    const auto priced = repriced(known, plans[p].plan);
    if (!priced) return priced.error();
    const ValidationReport& before = plans[p].report;
    auto report = compare_step(known, *priced, plans[p].measurement, {before.plan, before.date, true});
    if (!report) return report.error();
    report->notes.insert(report->notes.begin(),
                         held_out ? fmt::format("calibrated with the steps of the {} other plans", plans.size() - 1)
                                  : "calibrated with this very step: the error says little about other plans");
    made.reports.push_back(std::move(*report));
  }
  return made;
}

}  // namespace turnpoint
