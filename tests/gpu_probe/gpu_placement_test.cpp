// SPDX-License-Identifier: Apache-2.0
// Placements on several GPUs of one host, emulated, through the real turnpoint-probe: a process for each device, and
// transfers over an emulated NCCL whose sends wait until they have been received.
#include <QTest>
#include <nlohmann/json.hpp>
#include <random>

#include "core/probe/step_client.h"
#include "core/simulation/simulator.h"
#include "core/validation/compare_placement.h"
#include "core/validation/placement_step.h"
#include "gpu_probe/emulated_gpu/probe.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step_models.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

/// What is wrong with a placed step on a GPU for each device; empty: nothing.
std::string wrong_with_placed(const Scenario& scenario, const PlacementPlan& plan, const StepMeasurement& m) {
  if (auto wrong = test::wrong_with_gpus(m, int(plan.placement.devices)); !wrong.empty()) return wrong;
  if (!test::notes_say(m, "transfers on a stream of their own")) return "notes";
  const auto simulation = simulate(*plan.graph, plan.placement);
  double planned = 0;
  for (const auto& transfer : simulation->transfers) planned += double(transfer.bytes);
  if (m.planned_bytes != planned || m.received_bytes < planned) return "bytes";
  for (std::size_t t = 0; t < m.transfers.size(); ++t) {
    const MeasuredTransfer& transfer = m.transfers[t];
    // A time step's output and cell are one tensor to the simulator.
    const bool states =
        scenario.model->operators[plan.operator_of[simulation->transfers[t].source]].kind == OperatorKind::recurrent &&
        !plan.made_with.whole_layers;
    if (transfer.received_bytes < transfer.planned_bytes ||
        (!states && transfer.received_bytes > transfer.planned_bytes))
      return "bytes of a transfer";
    if (transfer.time.samples != 3 || (transfer.planned_bytes > 0 && transfer.time.min_s <= 0))
      return "a transfer was not timed";
  }
  for (const auto& task : m.tasks)
    if (task.time.samples != 3 || task.time.min_s <= 0) return "a task was not timed";
  for (std::size_t d = 0; d < m.devices.size(); ++d) {
    if (m.devices[d].persistent != simulation->devices[d].persistent_bytes) return "persistent bytes";
    if (m.devices[d].peak < m.devices[d].persistent) return "peak";
  }
  const auto report = compare_placement(scenario, plan, m, {"placed", "", false});
  if (!report) return report.error().message();
  return {};
}

}  // namespace

class GpuPlacementTest : public QObject {
  Q_OBJECT
  std::optional<test::EmulatedProbe> gpu_;

  ProbeLaunch launch() { return gpu_->launch(); }
  static StepChoice choice() {
    StepChoice made;
    made.backend = ProbeBackend::cuda;
    made.warm_up = 1, made.steps = 3, made.budget_s = 30;
    return made;
  }
  static std::pair<ScenarioPtr, PlacementPlan> small() {
    const auto scenario = test::scenario_on(test::block(), "v100-16gb-1x2");
    std::mt19937_64 random(1);
    return {scenario, test::placement_by_chance(*scenario, random, false)};
  }

 private slots:
  void initTestCase() {
    if (const auto why = test::no_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
  }
  void init() { gpu_.emplace(4); }
  void cleanup() {
    const std::string wrong = gpu_ ? gpu_->wrong() : "";
    gpu_.reset();
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  /// Orders by chance, in which transfers cross in every way.
  void placements_data() {
    QTest::addColumn<int>("gpus");
    QTest::addColumn<bool>("halves");
    QTest::newRow("2 GPUs") << 2 << false;
    QTest::newRow("3 GPUs") << 3 << false;
    QTest::newRow("4 GPUs") << 4 << false;
    QTest::newRow("3 GPUs, bf16") << 3 << true;
  }
  void placements() {
    QFETCH(int, gpus);
    QFETCH(bool, halves);
    std::mt19937_64 random(static_cast<std::uint64_t>(gpus) + 40);
    for (const auto& [model, unrolled] : {std::pair(test::mlp(12), false),
                                          {test::block(), false},
                                          {test::u_net(1, 4), false},
                                          {test::recurrent_stack(4), true},
                                          {test::recurrent_time_first(1), true},
                                          {test::lstm(3, false, true, 2), true}})
      for (const bool ordered : {true, false}) {
        const auto scenario = test::scenario_on(model, "a100-80gb-1x" + std::to_string(gpus), [&](Settings& settings) {
          if (halves) settings.precision = Precision::bf16;
        });
        const auto plan = test::placement_by_chance(*scenario, random, ordered, unrolled, ordered);
        const auto job = step_job_of(*scenario, plan, choice());
        QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
        const auto m = measure_step(launch(), *job, {});
        const std::string wrong = m ? wrong_with_placed(*scenario, plan, *m) : m.error().message();
        QVERIFY2(wrong.empty(), (model->name + ": " + wrong).c_str());
        QCOMPARE(m->numerics->rounding.has_value(), halves);
        QVERIFY(!halves || (m->numerics->rounding->holds() && m->numerics->rounding->gradient_error > 1e-5));
      }
  }

  /// What cannot be run is said by one of the ranks, in one error.
  void broken_jobs_are_refused() {
    const auto [scenario, plan] = small();
    StepJob job = *step_job_of(*scenario, plan, choice());
    job.placement->transfers.erase(job.placement->transfers.begin());
    const auto broken = measure_step(launch(), job, {});
    QVERIFY(!broken.has_value());
    QVERIFY2(broken.error().code == ErrorCode::bad_input &&
                 broken.error().message().find("no transfer brings") != std::string::npos,
             broken.error().message().c_str());
  }

  void faults_data() {
    QTest::addColumn<QString>("fault");
    QTest::addColumn<QString>("said");
    QTest::newRow("refused") << "ncclSend:3:2:1"
                             << "sending and receiving: NCCL error 2 (emulated system error)";
    QTest::newRow("fails later") << "ncclRecv:3:106:0"
                                 << "exchanging between GPUs: NCCL error 6";
    QTest::newRow("dies sending") << "ncclSend:4:-1:1"
                                  << "rank 1 ended with code 9";
    QTest::newRow("rank 0 dies receiving") << "ncclRecv:4:-1:0"
                                           << "rank 0 ended with code 9";
  }
  void faults() {
    QFETCH(QString, fault);
    QFETCH(QString, said);
    const auto [scenario, plan] = small();
    const auto job = step_job_of(*scenario, plan, choice());
    QVERIFY(job.has_value());
    qputenv("TURNPOINT_EMULATED_NCCL", fault.toLatin1());
    const auto m = measure_step(launch(), *job, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find(said.toStdString()) != std::string::npos, m.error().message().c_str());
  }
};

QTEST_GUILESS_MAIN(GpuPlacementTest)
#include "gpu_placement_test.moc"
