// SPDX-License-Identifier: Apache-2.0
// Reports of placed steps with made-up measurements, and the same placement under other prices.
#include <QtTest>

#include "core/schedule/training_graph.h"
#include "core/simulation/simulator.h"
#include "core/validation/compare_placement.h"
#include "core/validation/placement_step.h"
#include "core/validation/validate_plans.h"
#include "search/scenarios.h"
#include "search/small_models.h"

using namespace turnpoint;

namespace {

/// A layer in both directions and one over it.
ModelPtr unrolled_cells() {
  ModelBuilder b("cells", "test", 4, 3);
  TensorId x = b.input("x", {4, 3, 2}, {DimName::batch, DimName::sequence, DimName::channel}, ElementType::f32);
  x = b.recurrent("both", "LSTM", x, b.parameter("w0", {2, 12, 2}), b.parameter("r0", {2, 12, 3}), {}, 4, 2, 3, true,
                  false);
  x = b.recurrent("over", "GRU", x, b.parameter("w1", {1, 9, 6}), b.parameter("r1", {1, 9, 3}), {}, 3, 1, 3, true,
                  false);
  return test::finished(b, x);
}

Spread exactly(double seconds) { return {seconds, seconds, seconds, seconds, 5}; }

/// What a machine says that is `slower` times as slow as predicted.
StepMeasurement measured(const PlacementPlan& plan, const StepPlacement& placed, double slower) {
  const auto simulation = simulate(*plan.graph, plan.placement);
  StepMeasurement m;
  m.backend = "cpu";
  m.ranks = m.cores = int(placed.devices);
  m.step = exactly(simulation->makespan_s * slower);
  for (TaskIndex t = 0; t < placed.tasks.size(); ++t) {
    m.tasks.push_back({t, exactly(plan.graph->time_s[t] * slower)});
    const TaskRole role = placed.tasks[t].role;
    m.phases.push_back({placed.tasks[t].op,
                        role == TaskRole::forward  ? StepPhase::forward
                        : role == TaskRole::update ? StepPhase::update
                                                   : StepPhase::backward,
                        exactly(plan.graph->time_s[t] * slower)});
  }
  for (std::size_t t = 0; t < simulation->transfers.size(); ++t) {
    const auto& transfer = simulation->transfers[t];
    m.transfers.push_back({std::int32_t(t), double(transfer.bytes), double(transfer.bytes),
                           exactly((transfer.end_s - transfer.start_s) * slower)});
    m.received_bytes += double(transfer.bytes);
  }
  for (const auto& device : simulation->devices) {
    m.devices.push_back({device.persistent_bytes, device.peak_bytes, exactly(device.busy_s * slower)});
    m.memory.peak = std::max(m.memory.peak, device.peak_bytes);
  }
  return m;
}

}  // namespace

class ComparePlacementTest : public QObject {
  Q_OBJECT

  /// Whole layers, since weights that travel are not run.
  static PlacementPlanPtr placed(const ScenarioPtr& scenario, const char* method = "heft") {
    const auto result = test::run(method, scenario);
    if (!result) qFatal("%s", result.error().message().c_str());
    return std::get<PlacementPlanPtr>((*result)->plans->plan(0));
  }

 private slots:
  void a_machine_as_predicted_and_one_twice_as_slow() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x3");
    const auto plan = placed(scenario);
    const auto job = step_job_of(*scenario, *plan, {});
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    for (const double slower : {1.0, 2.0}) {
      const auto report =
          compare_placement(*scenario, *plan, measured(*plan, *job->placement, slower), {"heft", "", false});
      QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
      QVERIFY(report->placement);
      const double error = 1 / slower - 1;
      const auto fine = [&](const ComparedValue& value) {
        return value.measured && (value.predicted == 0 || std::abs(*value.error() - error) < 1e-9);
      };
      QVERIFY(fine(report->step) && fine(report->execution));
      QVERIFY(std::abs(report->step.predicted - plan->makespan_s) < 1e-12);
      double sum = 0;
      for (const auto* list : {&report->operators, &report->collectives, &report->phases})
        for (const auto& value : *list) QVERIFY2(fine(value), value.name.c_str());
      for (const auto& value : report->operators) sum += value.predicted;
      for (const double seconds : plan->graph->time_s) sum -= seconds;
      QVERIFY(std::abs(sum) < 1e-12);
      for (const auto& value : report->memory) QCOMPARE(*value.measured, value.predicted);
      QCOMPARE(*report->bytes_sent.measured, report->bytes_sent.predicted);
      QVERIFY(std::abs(*report->network.measured + *report->execution.measured - *report->step.measured) < 1e-12);
    }
  }

  void virtual_devices_are_no_separate_ones() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x3");
    const auto plan = placed(scenario);
    StepMeasurement m = measured(*plan, *step_job_of(*scenario, *plan, {})->placement, 1);
    m.backend = "cuda";
    m.cores = 1;
    const auto report = compare_placement(*scenario, *plan, m, {"heft", "", false});
    QVERIFY(report.has_value());
    QVERIFY(std::any_of(report->notes.begin(), report->notes.end(),
                        [](const std::string& note) { return note.starts_with("3 ranks share a GPU:"); }));
  }

  void what_is_not_of_this_placement_is_refused() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x3");
    const auto plan = placed(scenario);
    const auto job = step_job_of(*scenario, *plan, {});
    StepMeasurement other = measured(*plan, *job->placement, 1);
    other.devices.pop_back();
    QVERIFY(!compare_placement(*scenario, *plan, other, {}));
    QVERIFY(!compare_placement(*scenario, *plan, {}, {}));
    const auto wide = test::scenario_on(test::mlp(), "v100-16gb-1x3");
    QVERIFY(!placed_again(*wide, *plan));
  }

  void the_same_placement_again() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x3");
    const auto plan = placed(scenario, "pardnn");
    const auto same = placed_again(*scenario, *plan);
    QVERIFY2(same.has_value(), same ? "" : same.error().message().c_str());
    QVERIFY(std::abs((*same)->makespan_s - plan->makespan_s) < 1e-9 * plan->makespan_s);
    QCOMPARE((*same)->peak_bytes, plan->peak_bytes);
  }

  /// Jobs hold what the simulator ran, and say why there is none.
  void jobs() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x3");
    const auto plan = placed(scenario);
    const auto job = step_job_of(*scenario, *plan, {});
    const auto simulation = simulate(*plan->graph, plan->placement);
    QCOMPARE(job->devices(), 3);
    QCOMPARE(job->placement->tasks.size(), plan->graph->task_count());
    for (std::uint32_t d = 0; d < 3; ++d) {
      const auto run = simulation->run_on(d);
      QVERIFY(std::equal(run.begin(), run.end(), job->placement->order[d].begin(), job->placement->order[d].end()));
    }
    const auto refused = [&](const PlacementPlan& wrong, const StepChoice& choice, const char* why) {
      const auto made = step_job_of(*scenario, wrong, choice);
      if (!made && made.error().code == ErrorCode::usage && made.error().message().find(why) != std::string::npos)
        return true;
      qWarning("%s", made ? "taken" : made.error().message().c_str());
      return false;
    };
    StepChoice slice;
    slice.mode = StepMode::slice;
    QVERIFY(refused(*plan, slice, "one device's part alone"));
    PlacementPlan nameless = *plan;
    nameless.operator_of.clear();
    QVERIFY(refused(nameless, {}, "comes from no model"));
    TrainingGraphOptions options;
    options.micro_batches = 2;
    const auto several = training_graph_of(*scenario, options);
    PlacementPlan batches;
    batches.graph = several->graph;
    batches.operator_of = several->operator_of;
    batches.role = several->role;
    batches.made_with = options;
    batches.placement.devices = 3;
    batches.placement.device.assign(several->graph->task_count(), 0);
    QVERIFY(refused(batches, {}, "micro-batches"));
    // Time steps are run one by one, their products and gates are not.
    const auto recurrent = test::scenario_on(unrolled_cells(), "v100-16gb-1x3");
    for (const bool in_parts : {false, true}) {
      options = {};
      options.unrolled_steps = true, options.cells_in_parts = in_parts;
      const auto steps = training_graph_of(*recurrent, options);
      PlacementPlan pieces;
      pieces.graph = steps->graph;
      pieces.operator_of = steps->operator_of;
      pieces.role = steps->role;
      pieces.placement.devices = 3;
      pieces.placement.device.assign(steps->graph->task_count(), 1);
      const auto made = step_job_of(*recurrent, pieces, {});
      QCOMPARE(made.has_value(), !in_parts);
      if (!made) QVERIFY(made.error().message().find("neither its time steps nor all of it") != std::string::npos);
      if (!made) continue;
      for (TaskIndex t = 0; t < steps->graph->task_count(); ++t) {
        const auto name = std::string(steps->graph->names[t]);
        const auto& task = made->placement->tasks[t];
        if (steps->role[t] == TaskRole::update || name.find("/step") == std::string::npos) {
          QCOMPARE(task.step, std::int64_t(-1));
          continue;
        }
        QCOMPARE(task.step, std::int64_t(name[name.find("/step") + 5] - '0'));
        QCOMPARE(task.direction, name.find("-reverse") != std::string::npos ? 1u : 0u);
      }
    }
    const auto many = test::scenario_on(test::mlp(), "v100-16gb-2x8");
    QVERIFY(!step_job_of(*many, *placed(many), {}));
  }

  /// A point of a result that is a placement goes the whole way, calibration included.
  void points_and_calibration() {
    const auto scenario = test::scenario_on(test::attention(), "v100-16gb-1x2");
    std::vector<ValidatedPlan> plans;
    for (const char* method : {"heft", "pardnn:whole-layers", "round-robin"}) {
      const auto result = test::run(method, scenario);
      QVERIFY(result.has_value());
      const auto placement = std::get<PlacementPlanPtr>((*result)->plans->plan(0));
      const StepRunner runner = [&](const StepJob& job, const RunContext&) -> Expected<StepMeasurement> {
        return measured(*placement, *job.placement, 3);
      };
      auto plan = validate_point(**result, 0, {}, "", runner, {});
      QVERIFY2(plan.has_value(), plan ? "" : plan.error().message().c_str());
      QVERIFY(kind_of(plan->plan) == PlanKind::placement && plan->report.placement);
      plans.push_back(std::move(*plan));
    }
    const auto made = calibrate_plans(*scenario, plans);
    QVERIFY2(made.has_value(), made ? "" : made.error().message().c_str());
    QCOMPARE(made->reports.size(), plans.size());
    // Everything took three times as long, computing and links, and is predicted so now.
    for (std::size_t p = 0; p < plans.size(); ++p) {
      QVERIFY(std::abs(*made->reports[p].execution.error()) < 0.5 * std::abs(*plans[p].report.execution.error()));
      double predicted = 0, took = 0;
      for (const auto& value : made->reports[p].collectives) predicted += value.predicted, took += *value.measured;
      QVERIFY2(std::abs(predicted - took) < 0.05 * took, qPrintable(QString("%1 %2").arg(predicted).arg(took)));
    }
  }
};

QTEST_APPLESS_MAIN(ComparePlacementTest)
#include "compare_placement_test.moc"
