// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe carries out plans on 1, 2, 3, 4 and 8 processes: what they compute, send and hold is what
// the plan says, and whatever happens to it ends in one error, in time.
#include <QElapsedTimer>
#include <QFile>
#include <QProcess>
#include <QTest>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/cost/operator_cost.h"
#include "core/plan/step_client.h"
#include "core/search/method.h"
#include "gpu_probe/step_models.h"
#include "plan/schema_check.h"
#include "search/scenarios.h"

using namespace turnpoint;

namespace {

const std::string kProbe = TURNPOINT_BINARY_DIR "/turnpoint-probe";

StepJob job_of(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job;
  job.model = scenario->model;
  job.plan = plan;
  job.backend = ProbeBackend::cpu;
  const ParameterBytes bytes =
      parameter_bytes(scenario->settings.precision, scenario->settings.optimizer, Accounting::full);
  job.weight_bytes = bytes.weight, job.gradient_bytes = bytes.gradient, job.optimizer_bytes = bytes.optimizer;
  job.optimizer = to_string(scenario->settings.optimizer);
  job.warm_up = 1, job.steps = 3, job.budget_s = 20;
  return job;
}

StepJob long_job() {
  const auto scenario = test::scenario_on(test::builtin("lenet", 64), "v100-16gb-1x2");
  const auto result = test::run("data-parallel", scenario);
  StepJob job = job_of(scenario, (*result)->plans->plan(0));
  job.prove = false;
  job.steps = 100'000;
  job.budget_s = 600;
  return job;
}

/// What is wrong with a measurement of this plan; empty: nothing.
std::string fault(const Scenario& scenario, const StepJob& job, const StepMeasurement& m) {
  const Plan& plan = job.plan;
  const Model& model = *scenario.model;
  if (m.backend != "cpu" || m.ranks != plan.mesh.devices() || m.step.samples != 3 || m.step.min_s <= 0) return "head";
  if (!m.numerics || m.numerics->loss_error > m.numerics->tolerance ||
      m.numerics->gradient_error > m.numerics->tolerance || m.numerics->activation_error > m.numerics->tolerance ||
      m.numerics->update_error > 1e-7 || m.numerics->precision != "fp64")
    return "numerics" + (m.numerics ? " at " + m.numerics->where : "");
  // Bytes: every step of the plan once, and received what was planned.
  std::size_t listed = 0;
  double bytes = 0;
  const auto count = [&](const std::vector<ReshardStep>& steps) {
    listed += steps.size();
    for (const auto& step : steps) bytes += step.bytes;
  };
  for (const auto& reshard : plan.reshards) count(reshard.forward), count(reshard.backward);
  for (const auto& op : plan.operators) count(op.gradient_sync);
  if (m.exchanges.size() != listed)
    return std::to_string(m.exchanges.size()) + " exchanges of " + std::to_string(listed);
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({a, b, 1.0}); };
  if (!near(m.planned_bytes, bytes) || !near(m.received_bytes, bytes))
    return "received " + std::to_string(m.received_bytes) + " of " + std::to_string(bytes) + " bytes";
  for (const auto& exchange : m.exchanges)
    if (!near(exchange.planned_bytes, exchange.received_bytes) || !exchange.time || exchange.time->min_s < 0)
      return "an exchange received " + std::to_string(exchange.received_bytes);
  // Memory by kind, and the most of them together.
  CostBreakdown cost = plan.cost;
  const auto kept = cost[MemoryPart::activations] + cost[MemoryPart::copies];
  if (m.memory.parameters != cost[MemoryPart::parameters] || m.memory.gradients != cost[MemoryPart::gradients] ||
      m.memory.optimizer != cost[MemoryPart::optimizer] || m.memory.kept != kept)
    return "memory " + std::to_string(m.memory.kept) + " kept, planned " + std::to_string(kept);
  // Kept copies go while gradients come: together they never reach the plan's sum, which knows no liveness, but all
  // copies are there behind forward, and all gradients before the update.
  const std::int64_t least = m.memory.parameters + m.memory.optimizer + std::max(m.memory.gradients, m.memory.kept);
  if (m.memory.counted_peak > cost.memory_bytes() || m.memory.counted_peak < least)
    return "counted peak " + std::to_string(m.memory.counted_peak) + ", not from " + std::to_string(least) + " to " +
           std::to_string(cost.memory_bytes());
  if (m.memory.peak < m.memory.parameters) return "peak";
  // Every operator has been timed in the phases that it has.
  double phases = 0;
  std::vector<int> seen(model.operators.size() * 4, 0);
  for (const auto& phase : m.phases) {
    ++seen[phase.op.index * 4 + std::size_t(phase.phase)];
    phases += phase.time.min_s;
    if (phase.time.samples != 3) return "samples";
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    CostBreakdown own = plan.operators[i].cost;
    if (op.kind != OperatorKind::input && seen[i * 4] != 1) return op.name + " was not timed";
    if (own[ComputePart::recompute] > 0 && seen[i * 4 + 2] != 1) return op.name + " did not run again";
    if (*std::max_element(seen.begin() + std::ptrdiff_t(i) * 4, seen.begin() + std::ptrdiff_t(i) * 4 + 4) > 1)
      return op.name + " twice";
  }
  if (phases > m.step.q3_s * 1.05 * m.ranks) return "operators take longer than steps";
  return {};
}

std::vector<int> ranks_of(qint64 pid) {
  std::vector<int> ranks;
  QFile file(QString("/proc/%1/task/%1/children").arg(pid));
  if (file.open(QIODevice::ReadOnly))
    for (const auto& word : file.readAll().split(' '))
      if (!word.trimmed().isEmpty()) ranks.push_back(word.toInt());
  return ranks;
}

}  // namespace

class RunPlanTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

  ProbeLaunch launch(std::vector<std::string>* lines = nullptr) const {
    ProbeLaunch made{kProbe, 30, 0.4, {}};
    if (lines) made.on_line = [lines](const std::string& line) { lines->push_back(line); };
    return made;
  }

  /// Starts a long job and waits until its steps are being timed.
  static bool start(QProcess& process, const StepJob& job) {
    process.start(QString::fromStdString(kProbe), {"--job", "-"});
    const std::string text = write_step_job(job);
    process.write(text.c_str(), static_cast<qint64>(text.size()));
    process.closeWriteChannel();
    QByteArray said;
    QElapsedTimer timer;
    timer.start();
    while (timer.elapsed() < 60000 && !said.contains("timing steps")) {
      process.waitForReadyRead(1000);
      said += process.readAllStandardOutput();
    }
    return said.contains("timing steps");
  }
  static int errors(const QByteArray& lines) { return int(lines.count("\"type\":\"error\"")); }

 private slots:
  void plans_are_carried_out_data() {
    QTest::addColumn<int>("model");
    for (int i = 0; i < int(test::step_models().size()); ++i)
      QTest::newRow(test::step_models()[std::size_t(i)].name) << i;
  }
  void plans_are_carried_out() {
    QFETCH(int, model);
    int plans = 0, reruns = 0;
    for (const char* hardware : {"v100-16gb-1x1", "v100-16gb-1x2", "v100-16gb-1x3", "v100-16gb-2x2", "v100-16gb-1x8"}) {
      const auto scenario = test::scenario_on(test::step_models()[std::size_t(model)].make(), hardware);
      const auto result = test::run("ft", scenario);
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      // The least memory has every memory choice in it, the least time none.
      for (const std::size_t p : {std::size_t(0), (*result)->points.size() - 1}) {
        const StepJob job = job_of(scenario, (*result)->plans->plan(p));
        std::vector<std::string> lines;
        const auto measured = measure_step(launch(&lines), job, {});
        QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
        const std::string what = fault(*scenario, job, *measured);
        QVERIFY2(what.empty(), (std::string(hardware) + ", point " + std::to_string(p) + ": " + what).c_str());
        for (const auto& line : lines)
          QCOMPARE(schemas_.check("probe-message@1", nlohmann::json::parse(line)), std::string());
        ++plans;
        for (const auto& phase : measured->phases) reruns += phase.phase == StepPhase::recompute;
        if ((*result)->points.size() == 1) break;
      }
    }
    qInfo("%d plans, %d operators run again", plans, reruns);
  }

  // One device's part of a plan for sixteen.
  void slices() {
    const auto scenario = test::scenario_on(test::block(32, 4, 64, 4), "v100-16gb-2x8");
    const auto result = test::run("ft", scenario);
    QVERIFY(result.has_value());
    StepJob job = job_of(scenario, (*result)->plans->plan(0));
    const auto refused = measure_step(launch(), job, {});
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().message().find("16 devices") != std::string::npos, refused.error().message().c_str());
    job.mode = StepMode::slice;
    for (const int device : {0, 5, 15}) {
      job.slice_device = device;
      const auto m = measure_step(launch(), job, {});
      QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
      QVERIFY(m->mode == StepMode::slice && m->ranks == 1 && !m->numerics);
      QVERIFY(!m->exchanges.empty() && m->received_bytes == 0 && m->planned_bytes > 0);
      for (const auto& exchange : m->exchanges) QVERIFY(!exchange.time);
      CostBreakdown cost = job.plan.cost;
      QCOMPARE(m->memory.parameters, cost[MemoryPart::parameters]);
      QCOMPARE(m->memory.kept, cost[MemoryPart::activations] + cost[MemoryPart::copies]);
      double phases = 0;
      for (const auto& phase : m->phases) phases += phase.time.min_s;
      QVERIFY(phases > 0.2 * m->step.min_s && phases < 1.05 * m->step.q3_s);
    }
  }

  void refused_jobs() {
    StepJob job = long_job();
    job.backend = ProbeBackend::cuda;
    auto answer = measure_step(launch(), job, {});
    QVERIFY(!answer.has_value() && answer.error().message().find("CUDA") != std::string::npos);
    // Terabytes: refused before anything is allocated.
    const auto scenario = test::scenario_on(test::builtin("gpt2", 65536), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    QVERIFY(result.has_value());
    job = job_of(scenario, (*result)->plans->plan(0));
    QElapsedTimer timer;
    timer.start();
    answer = measure_step(launch(), job, {});
    QVERIFY(!answer.has_value());
    QVERIFY2(answer.error().message().find("this machine has") != std::string::npos ||
                 answer.error().message().find("too large") != std::string::npos,
             answer.error().message().c_str());
    QVERIFY(timer.elapsed() < 20000);
    // A plan that computes something else is refused by the ranks themselves.
    job = long_job();
    for (auto& op : job.plan.operators) op.gradient_sync.clear();
    answer = measure_step(launch(), job, {});
    QVERIFY(!answer.has_value());
    QVERIFY2(answer.error().message().find("not summed") != std::string::npos, answer.error().message().c_str());
    QCOMPARE(answer.error().code, ErrorCode::bad_input);
  }

  void a_large_proof_is_left_out() {
    const auto scenario = test::scenario_on(test::builtin("lenet", 256), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    StepJob job = job_of(scenario, (*result)->plans->plan(0));
    job.budget_s = 0.5;
    const auto m = measure_step(launch(), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(!m->numerics);
    QVERIFY(!m->notes.empty() && m->notes.front().find("not proven") != std::string::npos);
  }

  void a_rank_that_dies() {
    QProcess process;
    QVERIFY(start(process, long_job()));
    const auto ranks = ranks_of(process.processId());
    if (ranks.empty()) QSKIP("this kernel does not list children");
    QCOMPARE(ranks.size(), std::size_t(2));
    QElapsedTimer timer;
    timer.start();
    ::kill(ranks[1], SIGSEGV);
    QVERIFY(process.waitForFinished(20000));
    QVERIFY(timer.elapsed() < 5000);
    QCOMPARE(process.exitCode(), 5);
    const QByteArray said = process.readAllStandardOutput();
    QCOMPARE(errors(said), 1);
    QVERIFY2(said.contains("signal 11"), said.right(300));
  }

  void a_rank_that_hangs() {
    StepJob job = long_job();
    job.budget_s = 0.5;
    QProcess process;
    QVERIFY(start(process, [&] {
      job.warm_up = 0;
      job.budget_s = 2;
      return job;
    }()));
    const auto ranks = ranks_of(process.processId());
    if (ranks.empty()) QSKIP("this kernel does not list children");
    ::kill(ranks[1], SIGSTOP);
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitCode(), 5);
    const QByteArray said = process.readAllStandardOutput();
    QCOMPARE(errors(said), 1);
    QVERIFY2(said.contains("no sign of life"), said.right(300));
    QVERIFY2(said.contains("larger --budget"), said.right(300));
    QVERIFY(said.contains("heartbeat"));
  }

  void a_stop_ends_it_within_a_second() {
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    QElapsedTimer timer;
    bool asked = false;
    context.progress = [&](const Progress& progress) {
      if (asked || progress.phase != "timing steps") return;
      asked = true;
      timer.start();
      stop.request_stop();
    };
    const auto m = measure_step(launch(), long_job(), context);
    const auto took = timer.elapsed();
    QVERIFY(!m.has_value() && asked);
    QCOMPARE(m.error().code, ErrorCode::cancelled);
    QVERIFY2(took < 1000, QByteArray::number(took));
  }

  void two_at_once() {
    StepJob job = long_job();
    job.steps = 5;
    std::optional<Expected<StepMeasurement>> other;
    std::optional<ProbeHello> hello;
    std::jthread second([&] { other = measure_step(launch(), job, {}); });
    const auto first = measure_step(launch(), job, {}, &hello);
    second.join();
    QVERIFY2(first.has_value(), first ? "" : first.error().message().c_str());
    QVERIFY(other && other->has_value());
    QCOMPARE(first->received_bytes, (*other)->received_bytes);
    QVERIFY(hello && hello->backend == "cpu" && hello->ranks == 2);
  }
};

QTEST_GUILESS_MAIN(RunPlanTest)
#include "run_plan_test.moc"
