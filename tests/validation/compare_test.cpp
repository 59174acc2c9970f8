// SPDX-License-Identifier: Apache-2.0
// Reports of plans that were run on machines whose times we know.
#include <QtTest>

#include "core/plan/evaluator.h"
#include "core/validation/step_of.h"
#include "search/scenarios.h"
#include "search/small_models.h"
#include "validation/synthetic_machine.h"

using namespace turnpoint;

namespace {

/// As ranks send: every operator's gradients by themselves.
void alone(Settings& settings) { settings.bucket_bytes = 0; }

bool near(double a, double b, double tolerance = 1e-9) {
  return std::abs(a - b) <= tolerance * std::max({std::abs(a), std::abs(b), 1e-15});
}

ResultPtr searched(const ScenarioPtr& scenario) {
  const auto result = test::run("ft:micro-batches=1", scenario);
  if (!result) qFatal("%s", result.error().message().c_str());
  return *result;
}

const ComparedValue& named(const std::vector<ComparedValue>& values, const std::string& name) {
  for (const auto& value : values)
    if (value.name == name) return value;
  qFatal("there is no %s", name.c_str());
}

}  // namespace

class CompareTest : public QObject {
  Q_OBJECT

 private slots:
  void models_data() {
    QTest::addColumn<int>("model");
    QTest::newRow("mlp") << 0;
    QTest::newRow("attention") << 1;
    QTest::newRow("convolution") << 2;
  }
  static ModelPtr model_of(int i) { return i == 0 ? test::mlp() : i == 1 ? test::attention() : test::convolution(); }

  /// Priced again on its own hardware a plan costs what it cost; on other hardware, what the evaluator says.
  void repriced_plans_data() { models_data(); }
  void repriced_plans() {
    QFETCH(int, model);
    for (const char* hardware : {"v100-16gb-1x4", "v100-16gb-2x2"}) {
      const auto scenario = test::scenario_on(model_of(model), hardware);
      auto other = std::make_shared<Scenario>(*scenario);
      auto cluster = std::make_shared<Cluster>(*scenario->cluster);
      cluster->device.peak_fp32 *= 0.3;
      cluster->device.memory_bandwidth *= 0.5;
      cluster->device.launch_s *= 7;
      cluster->device.product_launch_s *= 7;
      cluster->links[kIntraNode].bandwidth *= 0.1;
      cluster->links[kInterNode].latency_s *= 5;
      other->cluster = cluster;
      const auto result = searched(scenario);
      for (std::size_t p = 0; p < result->points.size(); ++p) {
        const Plan plan = result->plans->sharding(p);
        const auto same = repriced(*scenario, plan);
        QVERIFY(same.has_value());
        QVERIFY(near(same->cost.time_s(), plan.cost.time_s()));
        QCOMPARE(same->cost.memory_bytes(), plan.cost.memory_bytes());
        for (std::size_t i = 0; i < plan.operators.size(); ++i)
          QVERIFY(near(same->operators[i].cost.time_s(), plan.operators[i].cost.time_s()));
        for (std::size_t r = 0; r < plan.reshards.size(); ++r)
          QVERIFY(near(same->reshards[r].time_s(), plan.reshards[r].time_s()));
        const auto there = repriced(*other, plan);
        QVERIFY(there.has_value());
        const auto judged = evaluate_plan(*other, *there);
        QVERIFY2(judged.has_value(), judged ? "" : judged.error().message().c_str());
        QVERIFY2(near(judged->time_s(), there->cost.time_s()),
                 qPrintable(QString("%1 %2").arg(judged->time_s()).arg(there->cost.time_s())));
        QCOMPARE(judged->memory_bytes(), there->cost.memory_bytes());
        QVERIFY(there->cost.time_s() > plan.cost.time_s());
      }
    }
  }

  void repriced_elsewhere_is_refused() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4"),
               other = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    QVERIFY(!repriced(*other, searched(scenario)->plans->sharding(0)));
  }

  /// On the machine that was predicted nothing is off.
  void a_machine_as_predicted_data() { models_data(); }
  void a_machine_as_predicted() {
    QFETCH(int, model);
    const auto scenario = test::scenario_on(model_of(model), "v100-16gb-1x4", alone);
    const auto result = searched(scenario);
    auto machine = test::as_predicted(*scenario);
    for (std::size_t p = 0; p < result->points.size(); p += 3) {
      const Plan plan = result->plans->sharding(p);
      const StepMeasurement measured = machine.run(*scenario, plan);
      const auto report = compare_step(*scenario, plan, measured, {"point", "2026-01-01T00:00:00Z", false});
      QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
      CostBreakdown cost = plan.cost;
      const double host = cost[NetworkPart::offload];
      QVERIFY(near(report->step.predicted, plan.cost.time_s() - host));
      QVERIFY(near(report->execution.predicted, plan.cost.compute_s()));
      QVERIFY(near(report->network.predicted, plan.cost.network_s() - host));
      for (const auto* value : {&report->step, &report->execution, &report->network})
        QVERIFY2(value->measured && near(*value->measured, value->predicted), value->name.c_str());
      std::size_t exchanges = 0;
      for (const auto& value : report->operators) QVERIFY(value.measured && near(*value.measured, value.predicted));
      for (const auto& value : report->collectives) {
        if (!value.measured) {
          QVERIFY(QString::fromStdString(value.name).endsWith("from the host and back"));
          continue;
        }
        ++exchanges;
        QVERIFY(near(*value.measured, value.predicted));
      }
      QCOMPARE(exchanges, measured.exchanges.size());
      for (const auto& value : report->memory) QCOMPARE(*value.measured, value.predicted);
      QCOMPARE(report->bytes_sent.predicted, *report->bytes_sent.measured);
      QVERIFY(named(report->memory, "peak").predicted >= named(report->memory, "parameters").predicted);
    }
  }

  /// What a slice cannot measure has no measured value anywhere.
  void a_slice_measures_no_exchange() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x4", alone);
    const Plan plan = searched(scenario)->plans->sharding(0);
    auto machine = test::as_predicted(*scenario);
    const auto report = compare_step(*scenario, plan, machine.run(*scenario, plan, StepMode::slice), {});
    QVERIFY(report.has_value());
    QCOMPARE(report->mode, std::string("slice"));
    QVERIFY(!report->collectives.empty());
    for (const auto& value : report->collectives) {
      QVERIFY(!value.measured && !value.error());
      QVERIFY(value.source == ValueSource::modelled);
    }
    QVERIFY(!report->network.measured && report->network.predicted > 0);
    QVERIFY(!report->bytes_sent.measured && report->bytes_sent.predicted > 0);
    QVERIFY(report->step.measured && near(*report->step.measured, report->execution.predicted));
    QCOMPARE(report->step.predicted, report->execution.predicted);
  }

  /// A gap in what was measured stays a gap: neither the part nor the sum gets a number.
  void what_was_left_out_is_not_measured() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const Plan plan = (*test::run("data-parallel", scenario))->plans->sharding(0);
    auto machine = test::as_predicted(*scenario);
    StepMeasurement measured = machine.run(*scenario, plan);
    QVERIFY(!measured.exchanges.empty());
    measured.exchanges.front().time.reset();
    const OperatorId lost = measured.phases.front().op;
    std::erase_if(measured.phases, [&](const MeasuredPhase& phase) { return phase.op == lost; });
    const auto report = compare_step(*scenario, plan, measured, {});
    QVERIFY(report.has_value());
    QVERIFY(!report->execution.measured);
    QVERIFY(!report->network.measured);
    QVERIFY(report->step.measured.has_value());
    int unmeasured = 0;
    for (const auto& value : report->operators) unmeasured += !value.measured;
    QCOMPARE(unmeasured, 1);
  }

  void waiting_is_named() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const Plan plan = searched(scenario)->plans->sharding(0);
    auto machine = test::as_predicted(*scenario);
    StepMeasurement measured = machine.run(*scenario, plan);
    const auto waited = [&](double times) {
      StepMeasurement slow = measured;
      slow.backend = "cpu";
      for (double* t : {&slow.step.min_s, &slow.step.q1_s, &slow.step.median_s, &slow.step.q3_s}) *t *= times;
      const auto report = compare_step(*scenario, plan, slow, {});
      return std::any_of(report->notes.begin(), report->notes.end(), [](const std::string& note) {
        return note.find("waited for a processor") != std::string::npos;
      });
    };
    QVERIFY(!waited(1.0));
    QVERIFY(!waited(1.2));
    QVERIFY(waited(3.0));
  }

  void the_worst_of_the_numerics() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    const Plan plan = searched(scenario)->plans->sharding(0);
    auto machine = test::as_predicted(*scenario);
    StepMeasurement measured = machine.run(*scenario, plan);
    measured.numerics = StepNumerics{0, 1e-16, 1e-16, 0.5, 1e-10, "fp64", "fc1"};
    QVERIFY(!compare_step(*scenario, plan, measured, {})->numerics->holds());
    measured.numerics->update_error = std::nan("");
    QVERIFY(!compare_step(*scenario, plan, measured, {})->numerics->holds());
    measured.numerics->update_error = 1e-12;
    QVERIFY(compare_step(*scenario, plan, measured, {})->numerics->holds());
  }

  void paper_accounting_predicts_all_that_is_held() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2",
                                            [](Settings& settings) { settings.accounting = Accounting::paper; });
    const Plan plan = searched(scenario)->plans->sharding(0);
    auto machine = test::as_predicted(*scenario);
    const auto report = compare_step(*scenario, plan, machine.run(*scenario, plan), {});
    QVERIFY(report.has_value());
    QVERIFY(named(report->memory, "gradients").predicted > 0);
    QVERIFY(named(report->memory, "optimizer").predicted > 0);
  }

  /// The probe's loss has no probabilities in fp32: what it holds is predicted without them.
  void a_loss_is_predicted_as_the_probe_has_it() {
    const auto of = [](LossPrecision loss) {
      return test::scenario_on(test::attention(), "v100-16gb-1x2", [loss](Settings& settings) {
        settings.precision = Precision::bf16;
        settings.loss = loss;
        settings.recompute = false;
      });
    };
    const auto scenario = of(LossPrecision::fp32), plain = of(LossPrecision::as_activations);
    const auto find = [](const ScenarioPtr& on) { return (*test::run("data-parallel", on))->plans->sharding(0); };
    Plan plan = find(scenario), without = find(plain);
    QVERIFY(plan.cost[MemoryPart::activations] > without.cost[MemoryPart::activations]);
    auto machine = test::as_predicted(*scenario);
    const auto report = compare_step(*scenario, plan, machine.run(*scenario, plan), {});
    const auto expected = compare_step(*plain, without, machine.run(*plain, without), {});
    QVERIFY(report.has_value() && expected.has_value());
    for (const char* kind : {"activations", "largest sum of these four", "peak"})
      QCOMPARE(named(report->memory, kind).predicted, named(expected->memory, kind).predicted);
    // A plan that makes its probabilities again does not keep them, but has them for a while.
    for (Plan* one : {&plan, &without})
      for (PlanOperator& op : one->operators) {
        const OperatorKind kind = scenario->model->operators[op.op].kind;
        op.choice.recompute = kind == OperatorKind::loss_statistics || kind == OperatorKind::cross_entropy;
      }
    const auto again = compare_step(*scenario, plan, machine.run(*scenario, plan), {}),
               of_plain = compare_step(*plain, without, machine.run(*plain, without), {});
    QVERIFY(again.has_value() && of_plain.has_value());
    QCOMPARE(named(again->memory, "peak").predicted, named(of_plain->memory, "peak").predicted);
    const auto says = [](const ValidationReport& r) {
      return std::any_of(r.notes.begin(), r.notes.end(), [](const std::string& note) {
        return note.find("probabilities in fp32") != std::string::npos;
      });
    };
    QVERIFY(says(*report) && !says(*expected));
  }

  void jobs() {
    const auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x4");
    const Plan plan = searched(scenario)->plans->sharding(0);
    const auto job = step_job_of(*scenario, plan, {});
    QVERIFY(job.has_value());
    QCOMPARE(job->optimizer, std::string("adam"));
    QCOMPARE(job->optimizer_bytes, 8);
    QVERIFY(job->model == scenario->model);
    QVERIFY(job->prove);
    StepChoice choice;
    choice.mode = StepMode::slice;
    choice.slice_device = 3;
    QVERIFY(!step_job_of(*scenario, plan, choice)->prove);
    choice.slice_device = 4;
    QVERIFY(!step_job_of(*scenario, plan, choice).has_value());
  }

  void plans_that_cannot_be_run() {
    const auto refused = [](const ScenarioPtr& scenario, const Plan& plan, const char* what) {
      const auto job = step_job_of(*scenario, plan, {});
      if (job) return false;
      if (job.error().code == ErrorCode::usage && QString::fromStdString(job.error().message()).contains(what))
        return true;
      qWarning("%s", job.error().message().c_str());
      return false;
    };
    auto scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2");
    Plan plan = searched(scenario)->plans->sharding(0);
    plan.pipeline.emplace().stages = 2;
    QVERIFY(refused(scenario, plan, "pipeline"));
    QVERIFY(!compare_step(*scenario, plan, {}, {}));
    scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2", [](Settings& s) { s.precision = Precision::bf16; });
    QVERIFY(refused(scenario, searched(scenario)->plans->sharding(0), "bf16"));
    scenario = test::scenario_on(test::mlp(), "h100-80gb-1x2", [](Settings& s) { s.precision = Precision::fp8; });
    QVERIFY(refused(scenario, searched(scenario)->plans->sharding(0), "8-bit"));
    scenario =
        test::scenario_on(test::mlp(), "v100-16gb-1x2", [](Settings& s) { s.optimizer_state = OptimizerState::bf16; });
    QVERIFY(refused(scenario, searched(scenario)->plans->sharding(0), "fp32"));
    // Ranks gather weights as they are read, and refuse a plan that has them rounded for that.
    scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2", [](Settings& s) {
      s.gathers = Gathers::bf16;
      s.factors.device_speed = 1e-4;
    });
    const auto rounded = test::run("update-sharding", scenario);
    QVERIFY(rounded && refused(scenario, (*rounded)->plans->sharding(0), "gathers as-read"));
    // No update by other rules is passed off as one that is not carried out.
    for (const Optimizer o : {Optimizer::lars, Optimizer::lamb, Optimizer::adafactor}) {
      scenario = test::scenario_on(test::mlp(), "v100-16gb-1x2", [&](Settings& s) { s.optimizer = o; });
      const auto shards = test::run("update-sharding", scenario);
      QVERIFY(shards.has_value());
      for (const Plan& one : {searched(scenario)->plans->sharding(0), (*shards)->plans->sharding(0)}) {
        const auto job = step_job_of(*scenario, one, {});
        QVERIFY(job && job->optimizer == to_string(o));
        StepChoice on_gpus;
        on_gpus.backend = ProbeBackend::cuda;
        const auto there = step_job_of(*scenario, one, on_gpus);
        QVERIFY(!there && there.error().message().find("takes norms of whole weights") != std::string::npos);
      }
    }
    scenario = test::scenario_on(test::mlp(), "v100-16gb-2x8");
    QVERIFY(refused(scenario, searched(scenario)->plans->sharding(0), "--devices 8"));
    QVERIFY(refused(scenario, Plan{}, "model"));
  }
};

QTEST_APPLESS_MAIN(CompareTest)
#include "compare_test.moc"
