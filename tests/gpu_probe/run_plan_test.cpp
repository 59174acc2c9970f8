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

#include "core/probe/step_client.h"
#include "core/search/method/method.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"
#include "plan_io/schema_check.h"
#include "send_signal.h"

using namespace turnpoint;

namespace {

const std::string kProbe = TURNPOINT_BINARY_DIR "/turnpoint-probe";

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
      // Eight processes, on machines of few cores, for every other model.
      if (model % 2 == 1 && std::string_view(hardware) == "v100-16gb-1x8") continue;
      const auto scenario = test::scenario_on(test::step_models()[std::size_t(model)].make(), hardware);
      const auto result = test::run("ft:micro-batches=1", scenario);
      QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
      // The least memory has every memory choice in it, the least time none.
      for (const std::size_t p : {std::size_t(0), (*result)->points.size() - 1}) {
        const StepJob job = test::job_of(scenario, (*result)->plans->sharding(p));
        std::vector<std::string> lines;
        const auto measured = measure_step(launch(&lines), job, {});
        QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
        const std::string what = test::fault(*scenario, job, *measured);
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

  // Levels of halves as axes, layers cut by reduction and output; updates that are shared out for some weights only.
  void partitions_and_shared_updates_are_carried_out() {
    for (const auto& [name, model] : {std::pair<std::string, ModelPtr>{"lenet", test::builtin("lenet", 8)},
                                      {"block", test::block(8, 4, 64, 4)}})
      for (const char* method : {"accpar:ratio=exact", "accpar:objective=volume", "hypar", "owt", "update-sharding"}) {
        const auto scenario = test::scenario_on(model, "v100-16gb-1x4");
        const auto result = test::run(method, scenario);
        QVERIFY2(result.has_value(), result ? "" : result.error().message().c_str());
        const StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
        const auto measured = measure_step(launch(), job, {});
        QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
        const std::string what = test::fault(*scenario, job, *measured);
        QVERIFY2(what.empty(), (name + " by " + method + ": " + what).c_str());
      }
  }

  // Shards of whole rows: what fills them up is held and sent, and changes no number.
  void padded_shards_are_carried_out() {
    const auto scenario = test::scenario_on(test::builtin("lenet", 8), "v100-16gb-1x4");
    const auto result = test::run("fsdp", scenario);
    QVERIFY(result.has_value());
    StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
    const auto padded = measure_step(launch(), job, {});
    QVERIFY2(padded.has_value(), padded ? "" : padded.error().message().c_str());
    const std::string what = test::fault(*scenario, job, *padded);
    QVERIFY2(what.empty(), what.c_str());
    for (auto& op : job.plan.operators) op.choice.whole_rows = false;
    const auto as_one_run = measure_step(launch(), job, {});
    QVERIFY2(as_one_run.has_value(), as_one_run ? "" : as_one_run.error().message().c_str());
    QVERIFY(padded->received_bytes > as_one_run->received_bytes);
  }

  // One device's part of a plan for sixteen.
  void slices() {
    const auto scenario = test::scenario_on(test::block(32, 4, 64, 4), "v100-16gb-2x8");
    const auto result = test::run("ft:micro-batches=1", scenario);
    QVERIFY(result.has_value());
    StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
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
    StepJob job = test::long_job();
    job.backend = ProbeBackend::cuda;
    job.steps = 3;
    auto answer = measure_step(launch(), job, {});
    if (!answer.has_value()) {  // else there is a GPU here (cuda_probe_test has an emulated one)
      QVERIFY2(answer.error().message().find("libcuda.so.1") != std::string::npos ||
                   answer.error().message().find("GPU") != std::string::npos,
               answer.error().message().c_str());
      QCOMPARE(answer.error().code, ErrorCode::device);
    }
    // Terabytes: refused before anything is allocated.
    const auto scenario = test::scenario_on(test::builtin("gpt2", 65536), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    QVERIFY(result.has_value());
    job = test::job_of(scenario, (*result)->plans->sharding(0));
    answer = measure_step(launch(), job, {});
    QVERIFY(!answer.has_value());
    QVERIFY2(answer.error().message().find("can be had on this machine") != std::string::npos ||
                 answer.error().message().find("too large") != std::string::npos,
             answer.error().message().c_str());
    // A plan that computes something else is refused by the ranks themselves.
    job = test::long_job();
    for (auto& op : job.plan.operators) op.parameters.clear();
    answer = measure_step(launch(), job, {});
    QVERIFY(!answer.has_value());
    QVERIFY2(answer.error().message().find("not summed") != std::string::npos, answer.error().message().c_str());
    QCOMPARE(answer.error().code, ErrorCode::bad_input);
  }

  void a_large_proof_is_left_out() {
    const auto scenario = test::scenario_on(test::builtin("lenet", 256), "v100-16gb-1x2");
    const auto result = test::run("data-parallel", scenario);
    StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
    job.budget_s = 0.5;
    const auto m = measure_step(launch(), job, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(!m->numerics);
    QVERIFY(!m->notes.empty() && m->notes.front().find("not proven") != std::string::npos);
  }

  void a_rank_that_dies() {
    QProcess process;
    QVERIFY(start(process, test::long_job()));
    const auto ranks = ranks_of(process.processId());
    if (ranks.empty()) QSKIP("this kernel does not list children");
    QCOMPARE(ranks.size(), std::size_t(2));
    QVERIFY(turnpoint::test::send_signal(ranks[1], SIGKILL));
    QVERIFY(process.waitForFinished(120000));  // the job lasts ten minutes
    QCOMPARE(process.exitCode(), 5);
    const QByteArray said = process.readAllStandardOutput();
    QCOMPARE(errors(said), 1);
    QVERIFY2(said.contains("signal 9"), said.right(300));
  }

  void a_rank_that_hangs() {
    StepJob job = test::long_job();
    job.budget_s = 0.5;
    QProcess process;
    QVERIFY(start(process, [&] {
      job.warm_up = 0;
      job.budget_s = 2;
      return job;
    }()));
    const auto ranks = ranks_of(process.processId());
    if (ranks.empty()) QSKIP("this kernel does not list children");
    QVERIFY(turnpoint::test::send_signal(ranks[1], SIGSTOP));
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitCode(), 5);
    const QByteArray said = process.readAllStandardOutput();
    QCOMPARE(errors(said), 1);
    QVERIFY2(said.contains("no sign of life"), said.right(300));
    QVERIFY2(said.contains("larger --budget"), said.right(300));
    QVERIFY(said.contains("heartbeat"));
  }

  void a_stop_ends_it() {
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    bool asked = false;
    context.progress = [&](const Progress& progress) {
      if (asked || progress.phase != "timing steps") return;
      asked = true;
      stop.request_stop();
    };
    const auto m = measure_step(launch(), test::long_job(), context);
    QVERIFY(!m.has_value() && asked);
    QCOMPARE(m.error().code, ErrorCode::cancelled);
  }

  void two_at_once() {
    StepJob job = test::long_job();
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
