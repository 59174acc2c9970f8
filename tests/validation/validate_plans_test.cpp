// SPDX-License-Identifier: Apache-2.0
// Validating points of a result with a stand-in for the probe.
#include <QtTest>

#include "core/validation/validate_plans.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "validation/synthetic_machine.h"

using namespace turnpoint;

namespace {

Result with_points(std::size_t count) {
  Result result;
  result.points.resize(count);
  return result;
}

}  // namespace

class ValidatePlansTest : public QObject {
  Q_OBJECT

 private slots:
  void samples() {
    QCOMPARE(sampled_points(with_points(101), 5, 50), (std::vector<std::size_t>{0, 25, 50, 75, 100}));
    QCOMPARE(sampled_points(with_points(101), 5, 30), (std::vector<std::size_t>{0, 30, 50, 75, 100}));
    QCOMPARE(sampled_points(with_points(3), 20, 1), (std::vector<std::size_t>{0, 1, 2}));
    QCOMPARE(sampled_points(with_points(9), 1, 4), (std::vector<std::size_t>{4}));
    QCOMPARE(sampled_points(with_points(1), 20, 0), (std::vector<std::size_t>{0}));
    QVERIFY(sampled_points(with_points(0), 20, 0).empty());
    for (std::size_t points = 1; points < 60; ++points)
      for (std::size_t count = 1; count < 25; ++count)
        for (std::size_t chosen = 0; chosen < points; chosen += 3) {
          const auto sample = sampled_points(with_points(points), count, chosen);
          QCOMPARE(sample.size(), std::min(points, count));
          QVERIFY(std::find(sample.begin(), sample.end(), chosen) != sample.end());
          for (std::size_t i = 0; i < sample.size(); ++i)
            QVERIFY(sample[i] < points && (i == 0 || sample[i - 1] < sample[i]));
        }
  }

  void points_of_a_result() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    QVERIFY(result.has_value());
    auto machine = test::as_predicted(*scenario);
    machine.noise = 0.5;
    int runs = 0;
    const StepRunner runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
      ++runs;
      return machine.run(*scenario, job.plan, job.mode);
    };
    std::vector<ValidatedPlan> plans;
    for (const std::size_t point : sampled_points(**result, 6, 0)) {
      auto plan = validate_point(**result, point, {}, "2026-01-01T00:00:00Z", runner, {});
      QVERIFY2(plan.has_value(), plan ? "" : plan.error().message().c_str());
      QCOMPARE(plan->point, point);
      QVERIFY(plan->report.plan.starts_with("ft:micro-batches=1, point " + std::to_string(point) + ": "));
      QVERIFY(plan->report.notes.front().find("hardware 'local'") != std::string::npos);
      plans.push_back(std::move(*plan));
    }
    QCOMPARE(runs, int(plans.size()));
    QVERIFY(plans.size() >= 3);

    // Each predicted from the others' steps alone: its own noise is not known to it.
    const auto calibrated = calibrate_plans(*scenario, plans);
    QVERIFY(calibrated.has_value());
    QCOMPARE(calibrated->reports.size(), plans.size());
    for (std::size_t p = 0; p < plans.size(); ++p) {
      QVERIFY(calibrated->reports[p].calibrated);
      QCOMPARE(*calibrated->reports[p].step.measured, *plans[p].report.step.measured);
      QVERIFY(calibrated->reports[p].step.predicted != plans[p].report.step.predicted);
    }
    auto others = plans;
    others.erase(others.begin());
    const auto without = calibrate_plans(*scenario, others);
    Scenario known = *scenario;
    known.cluster = without->cluster;
    const auto priced = repriced(known, *std::get<PlanPtr>(plans[0].plan));
    CostBreakdown cost = priced->cost;
    QCOMPARE(calibrated->reports[0].step.predicted, cost.time_s() - cost[NetworkPart::offload]);

    // One alone knows itself, and says so.
    const auto own = calibrate_plans(*scenario, {plans[0]});
    QVERIFY(own.has_value());
    QVERIFY(own->reports.front().notes.front().find("this very step") != std::string::npos);
    QVERIFY(!calibrate_plans(*scenario, {}));
  }

  /// Plans that were predicted in the right order and, once "calibrated" with noise, are not.
  void a_calibration_that_ranks_worse_says_so() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    auto machine = test::as_predicted(*scenario);
    machine.noise = 0.9;
    const StepRunner runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
      return machine.run(*scenario, job.plan, job.mode);
    };
    int warned = 0, silent = 0;
    for (machine.seed = 1; machine.seed < 400 && (warned == 0 || silent == 0);) {
      std::vector<ValidatedPlan> plans;
      std::vector<ValidationReport> before;
      for (const std::size_t point : sampled_points(**result, 5, 0)) {
        plans.push_back(std::move(*validate_point(**result, point, {}, "", runner, {})));
        before.push_back(plans.back().report);
      }
      const auto made = calibrate_plans(*scenario, plans);
      QVERIFY(made.has_value());
      const double was = *summarise(before).rank_correlation, is = *summarise(made->reports).rank_correlation;
      const bool said = made->notes.back().starts_with("warning: calibration lowered");
      QCOMPARE(said, is < was);
      for (const auto& report : made->reports)
        QCOMPARE(report.notes.front().starts_with("warning: calibration lowered"), said);
      ++(said ? warned : silent);
    }
    QVERIFY(warned > 0 && silent > 0);
  }

  /// A measured value lies within its own quartiles, whatever the machine.
  void measured_values_lie_within_their_quartiles() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    auto machine = test::as_predicted(*scenario);
    const StepRunner runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
      return machine.run(*scenario, job.plan, job.mode);
    };
    const auto plan = validate_point(**result, 0, {}, "", runner, {});
    QVERIFY(plan.has_value());
    int values = 0;
    for (const auto* list : {&plan->report.operators, &plan->report.collectives, &plan->report.phases})
      for (const auto& value : *list)
        if (value.measured) {
          ++values;
          QVERIFY(value.q1 <= *value.measured && *value.measured <= value.q3);
        }
    QVERIFY(values > 5);
    const ComparedValue& step = plan->report.step;
    QVERIFY(step.q1 <= *step.measured && *step.measured <= step.q3);
  }

  void the_best_of_several_runs() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    auto machine = test::as_predicted(*scenario);
    int runs = 0, proofs = 0;
    const StepRunner runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
      StepMeasurement made = machine.run(*scenario, job.plan);
      const double times[] = {3, 1, 2};
      made.step.q1_s = times[runs++];
      if (job.prove) made.numerics = StepNumerics{0, 0, 0, 0, 1e-10, "fp64", ""};
      proofs += job.prove;
      return made;
    };
    auto plan = validate_point(**result, 0, {}, "today", runner, {});
    QVERIFY(plan.has_value());
    for (int again = 0; again < 2; ++again) QVERIFY(run_again(**result, *plan, {}, runner, {}).has_value());
    QCOMPARE(runs, 3);
    QCOMPARE(*plan->report.step.measured, 1.0);
    QCOMPARE(plan->report.date, std::string("today"));
    QCOMPARE(proofs, 1);
    QCOMPARE(plan->measurement.step.q1_s, 1.0);
    QVERIFY(plan->measurement.numerics.has_value());
  }

  void errors_pass() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    const StepRunner broken = [](const StepJob&, const RunContext&) -> Expected<StepMeasurement> {
      return Error{ErrorCode::device, "the probe ended", {}, {}};
    };
    QVERIFY(validate_point(**result, 0, {}, "", broken, {}).error().code == ErrorCode::device);
    QVERIFY(validate_point(**result, 100000, {}, "", broken, {}).error().code == ErrorCode::usage);
  }
};

QTEST_APPLESS_MAIN(ValidatePlansTest)
#include "validate_plans_test.moc"
