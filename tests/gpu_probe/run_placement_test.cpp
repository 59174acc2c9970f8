// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe carries out placements on 1, 2, 3, 4 and 8 processes: what they compute, send and say is
// what the placement and the simulator say, and a rank that dies ends the others.
#include <QTest>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/probe/step_client.h"
#include "core/probe/step_placement.h"
#include "core/simulation/simulator.h"
#include "core/validation/compare_placement.h"
#include "core/validation/placement_step.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step_models.h"
#include "plan_io/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;

class RunPlacementTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

  static ProbeLaunch launch(std::vector<std::string>* lines = nullptr) {
    ProbeLaunch made{TURNPOINT_BINARY_DIR "/turnpoint-probe", 30, 0.4, {}};
    if (lines) made.on_line = [lines](const std::string& line) { lines->push_back(line); };
    return made;
  }

  static StepChoice choice() {
    StepChoice made;
    made.warm_up = 1, made.steps = 3, made.budget_s = 20;
    return made;
  }

  /// What is wrong with a measurement; empty: nothing.
  static std::string fault(const Scenario& scenario, const PlacementPlan& plan, const StepJob& job,
                           const StepMeasurement& m) {
    const StepPlacement& placed = *job.placement;
    if (m.backend != "cpu" || m.ranks != int(placed.devices) || m.step.samples != 3 || m.step.min_s <= 0) return "head";
    if (!m.numerics || m.numerics->loss_error > m.numerics->tolerance ||
        m.numerics->activation_error > m.numerics->tolerance || m.numerics->gradient_error > m.numerics->tolerance ||
        m.numerics->update_error > m.numerics->tolerance)
      return "numerics" + (m.numerics ? " at " + m.numerics->where : "");
    if (m.tasks.size() != placed.tasks.size() || m.transfers.size() != placed.transfers.size() ||
        m.devices.size() != placed.devices)
      return "counts";
    std::vector<double> busy(placed.devices, 0);
    for (TaskIndex t = 0; t < m.tasks.size(); ++t) {
      if (m.tasks[t].task != t || m.tasks[t].time.samples != 3 || m.tasks[t].time.min_s <= 0) return "task";
      busy[placed.tasks[t].device] += m.tasks[t].time.min_s;
    }
    const auto simulation = simulate(*plan.graph, plan.placement);
    double planned = 0;
    std::int64_t persistent = 0, all = 0;
    for (const auto& transfer : simulation->transfers) planned += double(transfer.bytes);
    if (m.planned_bytes != planned || m.received_bytes < planned) return "bytes";
    for (std::size_t t = 0; t < m.transfers.size(); ++t)
      if (m.transfers[t].planned_bytes != double(placed.transfers[t].bytes) ||
          m.transfers[t].received_bytes < m.transfers[t].planned_bytes)
        return "bytes of transfer " + std::to_string(t);
    for (std::uint32_t d = 0; d < placed.devices; ++d) {
      const auto& device = simulation->devices[d];
      if (m.devices[d].persistent != device.persistent_bytes) return "persistent bytes of " + std::to_string(d);
      if (m.devices[d].peak < m.devices[d].persistent) return "peak of " + std::to_string(d);
      if (busy[d] > m.devices[d].busy.q3_s + 1e-9) return "busy " + std::to_string(d);
      persistent += m.devices[d].persistent;
    }
    for (const auto bytes : plan.graph->persistent_bytes) all += bytes;
    if (persistent != all) return "parameters lie twice, or not at all";
    const auto report = compare_placement(scenario, plan, m, {"placed", "", false});
    if (!report) return report.error().message();
    if (!report->step.measured || report->collectives.size() != m.transfers.size()) return "report";
    return {};
  }

 private slots:
  void placements_are_carried_out_data() {
    QTest::addColumn<int>("model");
    QTest::addColumn<bool>("unrolled");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i << false;
    for (int i = 0; i < int(test::recurrent_models().size()); ++i)
      QTest::newRow(test::recurrent_models()[std::size_t(i)].name) << i << true;
  }
  /// Layers kept whole on one host's hardware, every task anywhere on the other's.
  void placements_are_carried_out() {
    QFETCH(int, model);
    QFETCH(bool, unrolled);
    const auto& models = unrolled ? test::recurrent_models() : test::step_models();
    std::mt19937_64 random(static_cast<std::uint64_t>(model) + 50);
    static constexpr const char* kHardware[] = {"v100-16gb-1x3", "v100-16gb-1x4", "v100-16gb-1x8", "v100-16gb-1x1"};
    for (const char* hardware : {"v100-16gb-1x2", kHardware[model % 4]}) {
      const auto scenario = test::scenario_on(models[std::size_t(model)].make(), hardware);
      const bool whole_layers = (model % 2 == 0) == (scenario->cluster->devices() == 2);
      const auto plan = test::placement_by_chance(*scenario, random, model % 2 == 0, unrolled, whole_layers);
      const auto job = step_job_of(*scenario, plan, choice());
      QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
      const auto read = parse_step_job(write_step_job(*job), "job");
      QVERIFY2(read.has_value(), read ? "" : read.error().message().c_str());
      QCOMPARE(write_step_job(*read), write_step_job(*job));
      QCOMPARE(schemas_.check("step-job@1", nlohmann::json::parse(write_step_job(*job))), std::string());
      std::vector<std::string> lines;
      const auto measured = measure_step(launch(&lines), *job, {});
      QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
      const std::string what = fault(*scenario, plan, *job, *measured);
      QVERIFY2(what.empty(), (std::string(hardware) + ": " + what).c_str());
      for (const auto& line : lines)
        QCOMPARE(schemas_.check("probe-message@1", nlohmann::json::parse(line)), std::string());
    }
  }

  /// Where one tensor after another crosses, every byte is one that the simulator counted.
  void bytes_are_those_of_the_simulator() {
    const auto scenario = test::scenario_on(test::mlp(12), "v100-16gb-1x3");
    std::mt19937_64 random(4);
    for (int trial = 0; trial < 3; ++trial) {
      const auto plan = test::placement_by_chance(*scenario, random, false);
      const auto job = step_job_of(*scenario, plan, choice());
      const auto measured = measure_step(launch(), *job, {});
      QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
      QCOMPARE(measured->received_bytes, measured->planned_bytes);
    }
  }

  void a_broken_job_is_refused_by_the_probe() {
    const auto scenario = test::scenario_on(test::mlp(12), "v100-16gb-1x2");
    std::mt19937_64 random(9);
    auto job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, false), choice());
    QVERIFY(job.has_value());
    while (job->placement->transfers.empty())
      job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, false), choice());
    job->placement->transfers.erase(job->placement->transfers.begin());
    job->prove = false;
    const auto refused = measure_step(launch(), *job, {});
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().code == ErrorCode::bad_input &&
                 refused.error().message().find("no transfer brings") != std::string::npos,
             refused.error().message().c_str());
  }

  void stopped_in_the_middle() {
    const auto scenario = test::scenario_on(test::block(32, 8, 64, 4), "v100-16gb-1x3");
    std::mt19937_64 random(2);
    auto job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, false), choice());
    QVERIFY(job.has_value());
    job->prove = false;
    job->steps = 100'000;
    job->budget_s = 100;
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    std::jthread later([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(1500));
      stop.request_stop();
    });
    const auto stopped = measure_step(launch(), *job, context);
    QVERIFY(!stopped.has_value());
    QVERIFY2(stopped.error().code == ErrorCode::cancelled, stopped.error().message().c_str());
  }
};

QTEST_APPLESS_MAIN(RunPlacementTest)
#include "run_placement_test.moc"
