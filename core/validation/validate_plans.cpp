// SPDX-License-Identifier: Apache-2.0
#include "core/validation/validate_plans.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/machine_use.h"
#include "core/base/text.h"
#include "core/cost/eager_kernels.h"
#include "core/plan/one_stage.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan/reprice.h"
#include "core/validation/calibrated.h"
#include "core/validation/compare.h"
#include "core/validation/compare_placement.h"
#include "core/validation/compare_ratio.h"
#include "core/validation/placement_step.h"

namespace turnpoint {

namespace {

constexpr const char* kFused =
    "the probe's kernels are fused, and so are those predicted here; the plan has eager ones";

Expected<ValidationReport> compared_fused(const Scenario& scenario, const AnyPlan& plan,
                                          const StepMeasurement& measured, const CompareLabels& labels) {
  return visit_plan(
      plan, [&](const Plan& one) { return compare_step(scenario, one, measured, labels); },
      [&](const RatioPlan& one) { return compare_ratio(scenario, one, measured, labels); },
      [&](const PlacementPlan& one) { return compare_placement(scenario, one, measured, labels); });
}

/// The plan with what this scenario's hardware predicts of it.
Expected<AnyPlan> predicted_again(const Scenario& scenario, const AnyPlan& plan) {
  return visit_plan(
      plan,
      [&](const Plan& one) -> Expected<AnyPlan> {
        auto priced = repriced(scenario, one);
        if (!priced) return priced.error();
        return AnyPlan(std::make_shared<const Plan>(std::move(*priced)));
      },
      [&](const RatioPlan& one) -> Expected<AnyPlan> {
        auto priced = evaluate_ratio_plan(scenario, one);
        if (!priced) return priced.error();
        return AnyPlan(std::make_shared<const RatioPlan>(std::move(*priced)));
      },
      [&](const PlacementPlan& one) -> Expected<AnyPlan> {
        auto again = placed_again(scenario, one);
        if (!again) return again.error();
        return AnyPlan(std::move(*again));
      });
}

Expected<ValidationReport> compared(const Scenario& scenario, const AnyPlan& plan, const StepMeasurement& measured,
                                    const CompareLabels& labels) {
  if (!runs_eagerly(scenario.settings)) return compared_fused(scenario, plan, measured, labels);
  Scenario fused = scenario;
  fused.settings.kernels = Kernels::fused;
  const auto again = predicted_again(fused, plan);
  if (!again) return again.error();
  auto report = compared_fused(fused, *again, measured, labels);
  if (report) report->notes.emplace_back(kFused);
  return report;
}

/// The same run beside what another scenario's hardware predicts of its plan.
Expected<ValidationReport> compared_again(const Scenario& scenario, const ValidatedPlan& run,
                                          const CompareLabels& labels) {
  const auto again = predicted_again(scenario, run.plan);
  if (!again) return again.error();
  return compared(scenario, *again, run.measurement, labels);
}

constexpr std::size_t kHeldOut = 3;  ///< plans from which each is predicted without its own measurement

Expected<StepMeasurement> watched_run(const StepJob& job, const StepRunner& runner, const RunContext& context) {
  MachineUse use;
  auto measured = runner(job, context);
  if (measured && use.disturbed()) measured->notes.emplace_back(kMeasuredMeanwhile);
  return measured;
}

Expected<void> report_on(const Result& result, ValidatedPlan& made, const std::string& date) {
  const Scenario& scenario = *result.scenario;
  auto report = compared(scenario, made.plan, made.measurement, {point_label(result, made.point), date, false});
  if (!report) return report.error();
  made.report = std::move(*report);
  if (made.measurement.backend == "cpu" && is_preset(scenario.hardware))
    made.report.notes.insert(made.report.notes.begin(),
                             fmt::format("predicted for {}, which is not what ran: the CPU of this machine did; search "
                                         "on hardware 'local', this machine, or calibrate",
                                         scenario.hardware));
  return {};
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

Expected<ValidatedPlan> validate_point(const Result& result, std::size_t point, const StepChoice& choice,
                                       const std::string& date, const StepRunner& runner, const RunContext& context,
                                       const HostRoom* host) {
  if (!result.plans || point >= result.points.size()) return usage_error("the result has no such plan");
  const Scenario& scenario = *result.scenario;
  ValidatedPlan made;
  made.point = point;
  made.plan = result.plans->plan(point);
  const auto job = step_job_of(scenario, made.plan, choice);
  if (!job) return job.error();
  made.ran = job->plan;
  if (host) {
    const auto needs = run_needs(scenario, made.plan, choice, *host);
    if (!needs) return needs.error();
    if (auto fits = check_room(*needs, choice, *host); !fits) return fits.error();
  }
  auto measured = watched_run(*job, runner, context);
  if (!measured) return measured.error();
  made.measurement = std::move(*measured);
  if (auto done = report_on(result, made, date); !done) return done.error();
  return made;
}

Expected<void> run_again(const Result& result, ValidatedPlan& plan, const StepChoice& choice, const StepRunner& runner,
                         const RunContext& context) {
  StepChoice timed = choice;
  timed.prove = false;
  const auto job = step_job_of(*result.scenario, plan.plan, timed);
  if (!job) return job.error();
  auto measured = watched_run(*job, runner, context);
  if (!measured) return measured.error();
  if (measured_seconds(*measured, measured->step) >= measured_seconds(plan.measurement, plan.measurement.step))
    return {};
  measured->numerics = plan.measurement.numerics;
  plan.measurement = std::move(*measured);
  return report_on(result, plan, plan.report.date);
}

namespace {

int micro_batches_of(const AnyPlan& plan) {
  return visit_plan(
      plan, [](const Plan& one) { return one.micro_batches(); }, [](const RatioPlan&) { return 1; },
      [](const PlacementPlan&) { return 1; });
}

/// Null where the batch is not cut.
Expected<ScenarioPtr> one_micro_batch(const Scenario& scenario, const AnyPlan& plan) {
  const int micro_batches = micro_batches_of(plan);
  return micro_batches > 1 ? one_stage_of(scenario, 1, micro_batches) : ScenarioPtr();
}

/// Times that come nearer can still rank the plans worse: whoever chooses by them should know.
void warn_of_order(const std::vector<ValidatedPlan>& plans, CalibratedPlans& made) {
  std::vector<ValidationReport> before;
  for (const ValidatedPlan& plan : plans) before.push_back(plan.report);
  const auto was = summarise(before).rank_correlation, is = summarise(made.reports).rank_correlation;
  if (!was || !is || *is >= *was) return;
  const std::string warning = fmt::format(
      "warning: calibration lowered the rank correlation of predicted and measured steps over these {} plans from "
      "{:.3f} to {:.3f}",
      plans.size(), *was, *is);
  made.notes.push_back(warning);
  for (ValidationReport& report : made.reports) report.notes.insert(report.notes.begin(), warning);
}

}  // namespace

Expected<CalibratedPlans> calibrate_plans(const Scenario& scenario, const std::vector<ValidatedPlan>& plans) {
  CalibratedPlans made;
  std::vector<CalibrationRun> all;
  std::vector<ScenarioPtr> parts;
  for (const ValidatedPlan& plan : plans) {
    if (kind_of(plan.plan) == PlanKind::ratio)
      return usage_error(
          "the steps of a ratio plan calibrate no profile: its devices have unlike parts, and which one took how long "
          "over an operator is not told");
    const auto part = one_micro_batch(scenario, plan.plan);
    if (!part) return part.error();
    parts.push_back(*part);
    all.push_back(
        {parts.back() ? parts.back().get() : &scenario, &plan.ran, &plan.measurement, micro_batches_of(plan.plan)});
  }
  const auto cluster_without = [&](std::size_t left_out, std::vector<std::string>& notes) {
    std::vector<CalibrationRun> runs = all;
    if (left_out < runs.size()) runs.erase(runs.begin() + std::ptrdiff_t(left_out));
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
    const ValidationReport& before = plans[p].report;
    auto report = compared_again(known, plans[p], {before.plan, before.date, true});
    if (!report) return report.error();
    report->notes.insert(report->notes.begin(),
                         held_out ? fmt::format("calibrated with the steps of the {} other plans", plans.size() - 1)
                                  : "calibrated with this very step: the error says little about other plans");
    made.reports.push_back(std::move(*report));
  }
  warn_of_order(plans, made);
  return made;
}

}  // namespace turnpoint
