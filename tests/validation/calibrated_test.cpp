// SPDX-License-Identifier: Apache-2.0
// Calibration on machines whose true times follow a law that we know: predictions of plans that were not used for it.
#include <QtTest>

#include "core/validation/calibrated.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "validation/synthetic_machine.h"

using namespace turnpoint;

namespace {

/// Slower than the data sheet, by kind; `bent`: the larger of two rates, which constants can follow only roughly.
test::SyntheticMachine machine_of(bool bent) {
  test::SyntheticMachine machine;
  machine.compute = [bent](const std::string& kind, const std::string& phase, const PhaseWork& work) {
    const double flop_s = kind.starts_with("matmul") ? 1 / 2e10 : kind.starts_with("conv") ? 1 / 0.7e10 : 1 / 0.3e10;
    const double byte_s = phase == "update" ? 1 / 3e9 : 1 / 6e9;
    const double launch = phase == "backward" ? 9e-6 : 3e-6, a = work.flop * flop_s, b = work.bytes * byte_s;
    return launch + (bent ? std::max(a, b) : a + b);
  };
  machine.exchange = [](Collective kind, const DeviceGroup& group, double bytes) {
    const double g = group.size, share = (g - 1) / g;
    const double steps = kind == Collective::all_reduce                               ? 2 * (g - 1)
                         : kind == Collective::all_to_all || kind == Collective::send ? 1
                                                                                      : g - 1;
    const double sent = bytes * (kind == Collective::all_reduce ? 2 * share : kind == Collective::send ? 1 : share);
    return steps * 4e-6 + sent / 1.5e9;
  };
  return machine;
}

double step_error(const Scenario& scenario, const Plan& plan, const StepMeasurement& measured) {
  const auto priced = repriced(scenario, plan);
  if (!priced) qFatal("%s", priced.error().message().c_str());
  const auto report = compare_step(scenario, *priced, measured, {});
  if (!report) qFatal("%s", report.error().message().c_str());
  return std::abs(*report->step.error());
}

Scenario on(const Scenario& scenario, ClusterPtr cluster) {
  Scenario other = scenario;
  other.cluster = std::move(cluster);
  return other;
}

}  // namespace

class CalibratedTest : public QObject {
  Q_OBJECT

 private slots:
  void other_plans_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<bool>("bent");
    QTest::addColumn<double>("noise");
    QTest::addColumn<double>("bar");
    const char* names[] = {"mlp", "attention", "convolution"};
    for (int m = 0; m < 3; ++m) {
      QTest::addRow("%s, a law of the fits' form", names[m]) << m << false << 0.0 << 0.03;
      QTest::addRow("%s, another law, 3 %% noise", names[m]) << m << true << 0.03 << 0.03;
    }
  }
  /// Calibrated on three plans of the frontier; judged on all others.
  void other_plans() {
    QFETCH(int, model);
    QFETCH(bool, bent);
    QFETCH(double, noise);
    QFETCH(double, bar);
    const auto scenario = test::scenario_on(model == 0   ? test::mlp()
                                            : model == 1 ? test::attention()
                                                         : test::convolution(),
                                            "v100-16gb-1x4", [](Settings& s) { s.collectives = Collectives::rings; });
    const auto result = test::run("ft:micro-batches=1", scenario);
    QVERIFY(result.has_value());
    const std::size_t count = (*result)->points.size();
    QVERIFY(count >= 6);
    auto machine = machine_of(bent);
    machine.noise = noise;
    std::vector<Plan> plans;
    std::vector<StepMeasurement> measured;
    for (std::size_t p = 0; p < count; ++p) {
      plans.push_back((*result)->plans->sharding(p));
      measured.push_back(machine.run(*scenario, plans.back()));
    }
    const std::set<std::size_t> used = {0, count / 2, count - 1};
    std::vector<CalibrationRun> runs;
    for (const std::size_t p : used) runs.push_back({scenario.get(), &plans[p], &measured[p]});
    std::vector<std::string> notes;
    const Scenario calibrated = on(*scenario, calibrated_with(scenario->cluster, runs, notes));
    QVERIFY(notes.size() >= 2);
    double before = 0, after = 0, worst = 0, own = 0;
    for (std::size_t p = 0; p < count; ++p) {
      const double error = step_error(calibrated, plans[p], measured[p]);
      if (used.count(p)) {
        own = std::max(own, error);
        continue;
      }
      before += step_error(*scenario, plans[p], measured[p]) / double(count - used.size());
      after += error / double(count - used.size());
      worst = std::max(worst, error);
    }
    qInfo("%zu other plans: mean error %.1f %% before, %.2f %% after, worst %.2f %%; of the plans used %.2f %%",
          count - used.size(), 100 * before, 100 * after, 100 * worst, 100 * own);
    QVERIFY(before > 0.05);
    QVERIFY2(after < bar, qPrintable(QString::number(after)));
    QVERIFY2(own < bar, qPrintable(QString::number(own)));
  }

  /// A signature that was run is predicted with its own time, in another model too.
  void exact_where_the_signature_matches() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    const Plan plan = (*result)->plans->sharding(0);
    auto machine = machine_of(true);
    machine.noise = 0.2;
    const StepMeasurement measured = machine.run(*scenario, plan);
    std::vector<std::string> notes;
    const auto cluster = calibrated_with(scenario->cluster, {{scenario.get(), &plan, &measured}}, notes);
    const auto priced = repriced(on(*scenario, cluster), plan);
    const auto report = compare_step(on(*scenario, cluster), *priced, measured, {});
    for (const auto& value : report->operators) {
      // Its update follows constants.
      const bool product = value.name.starts_with("fc");
      if (!product) QVERIFY2(std::abs(*value.error()) < 1e-9, value.name.c_str());
    }
    int exact = 0;
    for (const auto& phase : measured.phases)
      for (const auto& sample : cluster->operators) exact += sample.time_s == phase.time.q1_s;
    QVERIFY(exact >= int(measured.phases.size()) - 2);
  }

  void what_was_measured_before_gives_way() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    auto known = std::make_shared<Cluster>(*scenario->cluster);
    known->operators.push_back({"matmul", {7, 7, 7}, Precision::fp32, "forward", 1});
    known->operators.push_back({"matmul", {7, 7, 7}, Precision::bf16, "forward", 1});
    known->operators.push_back({"attention", {7, 7, 7}, Precision::fp32, "forward", 1});
    known->fits.push_back({"matmul", "forward", Precision::fp32, 1, 1, 1, 9});
    known->fits.push_back({"attention", "forward", Precision::fp32, 1, 1, 1, 9});
    known->collectives.push_back({Collective::all_reduce, {2, 1, 2, 1}, 1e12, 7});
    const Scenario before = on(*scenario, known);
    const auto result = test::run("data-parallel", std::make_shared<Scenario>(before));
    const Plan plan = (*result)->plans->sharding(0);
    auto machine = machine_of(false);
    const StepMeasurement measured = machine.run(before, plan);
    std::vector<std::string> notes;
    const auto cluster = calibrated_with(known, {{&before, &plan, &measured}}, notes);
    const auto has = [&](const char* kind, Precision precision) {
      return std::any_of(cluster->operators.begin(), cluster->operators.end(), [&](const OperatorSample& sample) {
        return sample.kind == kind && sample.precision == precision && sample.time_s == 1;
      });
    };
    QVERIFY(!has("matmul", Precision::fp32));
    QVERIFY(has("matmul", Precision::bf16));
    QVERIFY(has("attention", Precision::fp32));
    int matmul = 0, attention = 0;
    for (const auto& fit : cluster->fits) {
      matmul += fit.kind == "matmul" && fit.launch_s == 1;
      attention += fit.kind == "attention";
    }
    QCOMPARE(matmul, 0);
    QCOMPARE(attention, 1);
    QVERIFY(std::any_of(cluster->collectives.begin(), cluster->collectives.end(),
                        [](const CollectiveSample& sample) { return sample.bytes == 1e12; }));
    QVERIFY(cluster->links[kIntraNode].origin == Origin::calibrated);
    // It is a profile like any other.
    const auto again = parse_hardware_profile(write_hardware_profile(*cluster), "again");
    QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
    QCOMPARE((*again)->fits.size(), cluster->fits.size());
    QCOMPARE((*again)->operators.size(), cluster->operators.size());
  }

  void links_of_groups_that_were_not_run() {
    const auto scenario = test::scenario_on(test::residual(), "v100-16gb-1x4");
    const auto result = test::run("ft:micro-batches=1", scenario);
    auto machine = machine_of(false);
    std::vector<Plan> plans;
    std::vector<StepMeasurement> measured;
    for (std::size_t p = 0; p < (*result)->points.size(); ++p) plans.push_back((*result)->plans->sharding(p));
    std::vector<CalibrationRun> runs;
    for (const auto& plan : plans) measured.push_back(machine.run(*scenario, plan));
    for (std::size_t p = 0; p < plans.size(); ++p) runs.push_back({scenario.get(), &plans[p], &measured[p]});
    std::vector<std::string> notes;
    const auto cluster = calibrated_with(scenario->cluster, runs, notes);
    QVERIFY(std::abs(cluster->links[kIntraNode].bandwidth / 1.5e9 - 1) < 0.02);
    QVERIFY(std::abs(cluster->links[kIntraNode].latency_s / 4e-6 - 1) < 0.02);
  }

  void slices_say_nothing_of_links_and_nothing_says_nothing() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    const Plan plan = (*result)->plans->sharding(0);
    auto machine = machine_of(false);
    const StepMeasurement slice = machine.run(*scenario, plan, StepMode::slice);
    std::vector<std::string> notes;
    const auto cluster = calibrated_with(scenario->cluster, {{scenario.get(), &plan, &slice}}, notes);
    QVERIFY(cluster != scenario->cluster);
    QVERIFY(cluster->collectives.empty());
    QCOMPARE(cluster->links[kIntraNode].bandwidth, scenario->cluster->links[kIntraNode].bandwidth);
    const StepMeasurement nothing;
    QVERIFY(calibrated_with(scenario->cluster, {{scenario.get(), &plan, &nothing}}, notes) == scenario->cluster);
  }
};

QTEST_APPLESS_MAIN(CalibratedTest)
#include "calibrated_test.moc"
