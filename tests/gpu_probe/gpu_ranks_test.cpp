// SPDX-License-Identifier: Apache-2.0
// Several GPUs on one host, emulated, through the real turnpoint-probe: a process for each, collectives and plans'
// steps over an emulated NCCL, and what is said when NCCL is missing or fails, a rank dies or there are too few GPUs.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "core/hardware/probe_client.h"
#include "core/probe/measure_machine.h"
#include "gpu_probe/cuda/nccl.h"
#include "gpu_probe/emulated_gpu/probe.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"

using namespace turnpoint;

namespace {

constexpr Collective kEveryKind[] = {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                                     Collective::all_to_all, Collective::broadcast,  Collective::send};

ProbeJob exchanges_on(int gpus) {
  ProbeJob job;
  job.backend = ProbeBackend::cuda;
  job.ranks = gpus;
  job.item_s = 0.003;
  job.limit_s = 20;
  for (int size = 2; size <= gpus; size *= 2)
    for (int stride = 1; stride * size <= gpus; stride *= 2)
      for (const auto kind : kEveryKind)
        for (const std::int64_t bytes : {4, 4096, 1 << 18}) job.collectives.push_back({kind, size, bytes, stride});
  return job;
}

StepJob on_gpus(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job = test::job_of(scenario, plan);
  job.backend = ProbeBackend::cuda;
  return job;
}

/// What is wrong with a step on so many GPUs; empty: nothing.
std::string wrong_with(const StepMeasurement& m, int gpus) {
  if (auto wrong = test::wrong_with_gpus(m, gpus); !wrong.empty()) return wrong;
  if (std::abs(m.received_bytes - m.planned_bytes) > 1e-6 * m.planned_bytes)
    return "received " + std::to_string(m.received_bytes) + " of " + std::to_string(m.planned_bytes) + " bytes";
  for (const auto& exchange : m.exchanges)
    if (!exchange.time || exchange.time->min_s < 0) return "an exchange was not timed";
  return {};
}

}  // namespace

class GpuRanksTest : public QObject {
  Q_OBJECT
  std::optional<test::EmulatedProbe> gpu_;

  ProbeLaunch launch() { return gpu_->launch(); }
  /// What ended it, or "nothing".
  std::string stepped_with(const StepJob& job, const char* fault) {
    qputenv("TURNPOINT_EMULATED_NCCL", fault);
    const auto m = measure_step(launch(), job, {});
    return m ? "nothing" : m.error().message();
  }
  StepJob small_step() {
    const auto scenario = test::scenario_on(test::mlp(12), "v100-16gb-1x2");
    return on_gpus(scenario, (*test::run("data-parallel", scenario))->plans->sharding(0));
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

  void collectives_data() {
    QTest::addColumn<int>("gpus");
    for (const int gpus : {2, 4}) QTest::addRow("%d GPUs", gpus) << gpus;
  }
  void collectives() {
    QFETCH(int, gpus);
    const ProbeJob job = exchanges_on(gpus);
    const auto messages = run_probe(launch(), job, {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    const ProbeHello& hello = *messages->hello();
    QCOMPARE(hello.ranks, gpus);
    QCOMPARE(hello.devices.size(), std::size_t(4));  // all that are visible
    QVERIFY(std::find(hello.libraries.begin(), hello.libraries.end(), "NCCL 2.27.3") != hello.libraries.end());
    QVERIFY(hello.identity.find("\"transport\":\"NCCL\"") != std::string::npos);
    QCOMPARE(messages->items().size(), job.items());
    for (const auto& item : messages->items()) {
      QVERIFY2(item.not_measured.empty(), item.not_measured.c_str());
      QVERIFY(item.collective && item.time_s > 0 && item.samples >= 1);
      QCOMPARE(item.implementation, std::string("NCCL 2.27.3"));
      QCOMPARE(item.collective->group.nodes, 1);
      QCOMPARE(item.collective->group.concurrent, gpus / item.collective->group.size);
    }
  }

  void steps_data() {
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<int>("gpus");
    QTest::newRow("2 GPUs") << "v100-16gb-1x2" << 2;
    QTest::newRow("3 GPUs") << "v100-16gb-1x3" << 3;
    QTest::newRow("4 GPUs") << "v100-16gb-2x2" << 4;
  }
  void steps() {
    QFETCH(QString, hardware);
    QFETCH(int, gpus);
    int proven = 0;
    for (const auto& model : {test::mlp(12), test::block(), test::lstm(4, true, true)}) {
      const auto scenario = test::scenario_on(model, hardware.toStdString());
      for (const char* method : {"ft:micro-batches=1", "fsdp", "tofu"}) {
        const auto result = test::run(method, scenario);
        if (!result || (*result)->points.empty() || !(*result)->plans) continue;
        const std::size_t count = (*result)->points.size();
        for (const std::size_t point : std::set<std::size_t>{0, count / 2}) {
          const Plan plan = (*result)->plans->sharding(point);
          if (plan.pipeline) continue;
          const auto m = measure_step(launch(), on_gpus(scenario, plan), {});
          const std::string wrong = m ? wrong_with(*m, gpus) : m.error().message();
          QVERIFY2(wrong.empty(), (model->name + ", " + method + ": " + wrong).c_str());
          ++proven;
        }
      }
    }
    QVERIFY2(proven >= 4, QByteArray::number(proven));
  }

  /// Elements of 2 bytes between GPUs: the plan's bytes, and numbers that only rounding explains.
  void steps_in_bf16_data() {
    QTest::addColumn<QString>("hardware");
    QTest::addColumn<int>("gpus");
    QTest::newRow("2 GPUs") << "a100-80gb-1x2" << 2;
    QTest::newRow("4 GPUs") << "a100-80gb-2x2" << 4;
  }
  void steps_in_bf16() {
    QFETCH(QString, hardware);
    QFETCH(int, gpus);
    int proven = 0;
    for (const auto& model : {test::convolution(6), test::block(), test::lstm(4, true, true), test::turned_table()}) {
      const auto scenario = test::scenario_on(model, hardware.toStdString(),
                                              [](Settings& settings) { settings.precision = Precision::bf16; });
      for (const char* method : {"ft:micro-batches=1", "fsdp"}) {
        const auto result = test::run(method, scenario);
        if (!result || (*result)->points.empty() || !(*result)->plans) continue;
        const Plan plan = (*result)->plans->sharding((*result)->points.size() / 2);
        if (plan.pipeline) continue;
        StepJob job = on_gpus(scenario, plan);
        job.precision = ProbePrecision::bf16;
        job.floating_bytes = 2;
        const auto m = measure_step(launch(), job, {});
        const std::string wrong = m ? wrong_with(*m, gpus) : m.error().message();
        QVERIFY2(wrong.empty(), (model->name + ", " + method + ": " + wrong).c_str());
        QVERIFY(m->numerics->rounding && m->numerics->rounding->precision == "bf16" &&
                m->numerics->rounding->gradient_error > 1e-4);
        QVERIFY2(m->numerics->rounding->holds(), (model->name + " at " + m->numerics->rounding->where).c_str());
        QVERIFY(test::notes_say(*m, "tensors in bf16"));
        ++proven;
      }
    }
    QVERIFY2(proven >= 6, QByteArray::number(proven));
  }

  /// A plan that computes something else is found out here as well.
  void a_wrong_plan_is_refused() {
    StepJob job = small_step();
    for (auto& op : job.plan.operators) op.parameters.clear();
    const auto m = measure_step(launch(), job, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find("not summed") != std::string::npos, m.error().message().c_str());
    QCOMPARE(m.error().code, ErrorCode::bad_input);
  }

  void too_few_gpus() {
    qputenv("TURNPOINT_EMULATED_GPUS", "3");
    const auto refused = run_probe(launch(), exchanges_on(4), {});
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().what.find("4 ranks need a GPU each, and the driver shows 3") != std::string::npos,
             refused.error().what.c_str());
    QVERIFY(!refused.error().hint.empty());
    QCOMPARE(gpu_->lines().size(), std::size_t(1));
    // A plan can be proven all the same.
    qputenv("TURNPOINT_EMULATED_GPUS", "1");
    const auto m = measure_step(launch(), small_step(), {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(m->ranks == 2 && m->cores == 1 && test::notes_say(*m, "virtual devices"));
  }

  /// All GPUs of the machine, however many CPU ranks would have been taken.
  void the_machine_is_measured_with_all_its_gpus() {
    qputenv("TURNPOINT_EMULATED_GPUS", "2");
    qputenv("LD_LIBRARY_PATH",
            TURNPOINT_EMULATED_GPU_DIR ":" TURNPOINT_EMULATED_NCCL_DIR ":" TURNPOINT_EMULATED_NVML_DIR);
    qputenv("TURNPOINT_EMULATED_NVML", "gpus=2,link=0-1x4,path=0-1:10");
    MeasureOptions options;
    options.program = TURNPOINT_BINARY_DIR "/turnpoint-probe";
    options.ranks = 4;
    options.budget_s = 3;
    options.item_s = 0.001;
    options.kept_in.clear();
    const auto measured = measure_machine(options, {});
    QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
    QCOMPARE(measured->messages.hello()->ranks, 2);
    const Cluster& cluster = *measured->profile.cluster;
    QCOMPARE(cluster.devices(), 2);
    QVERIFY(!cluster.collectives.empty());
    for (const auto& sample : cluster.collectives) QCOMPARE(sample.group.size, 2);
    QCOMPARE(topology_cell(cluster.topology, 0, 1), std::string("NV4"));
    const auto kept = parse_hardware_profile(write_hardware_profile(cluster), "p.json");
    QVERIFY(kept && (*kept)->topology == cluster.topology);
    options.backend = ProbeBackend::cuda;
    const auto refused = measure_machine(options, {});
    QVERIFY(!refused.has_value());
    QVERIFY2(refused.error().what.find("4 ranks need a GPU each") != std::string::npos, refused.error().what.c_str());
  }

  /// Ranks begin at the GPU that the job names.
  void the_first_gpu_can_be_chosen() {
    qputenv("TURNPOINT_EMULATED_GPUS", "3");
    ProbeJob job = exchanges_on(2);
    job.device = 1;
    qputenv("TURNPOINT_EMULATED_NCCL", "ncclAllReduce:1:2:0");
    const auto messages = run_probe(launch(), job, {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    QCOMPARE(gpu_->lines().back()["measured"].get<std::size_t>(), job.items());
    StepJob step = small_step();
    step.device = 1;
    QCOMPARE(stepped_with(step, "ncclAllReduce:1:2:0"), std::string("nothing"));
    const std::string failed = stepped_with(step, "ncclAllReduce:1:2:2");
    QVERIFY2(failed.find("NCCL error 2") != std::string::npos, failed.c_str());
  }

  void without_nccl() {
    // Not even one that is installed here may be found.
    QTemporaryDir folder;
    QFile broken(folder.filePath("libnccl.so.2"));
    QVERIFY(broken.open(QIODevice::WriteOnly));
    broken.close();
    qputenv("LD_LIBRARY_PATH", QByteArray(TURNPOINT_EMULATED_GPU_DIR ":") + folder.path().toUtf8());
    const ProbeJob job = exchanges_on(2);
    const auto messages = run_probe(launch(), job, {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    QCOMPARE(messages->items().size(), job.items());
    for (const auto& item : messages->items()) {
      QVERIFY2(item.not_measured.find("NCCL is missing") != std::string::npos, item.not_measured.c_str());
      QVERIFY2(item.not_measured.find("libnccl2") != std::string::npos, item.not_measured.c_str());
    }
    QVERIFY(std::any_of(messages->hello()->missing.begin(), messages->hello()->missing.end(),
                        [](const std::string& text) { return text.starts_with("NCCL is missing"); }));
    const auto m = measure_step(launch(), small_step(), {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().what.find("NCCL is missing") != std::string::npos, m.error().what.c_str());
    QVERIFY(m.error().hint.find("libnccl2") != std::string::npos);
  }

  void faults_data() {
    QTest::addColumn<QString>("fault");
    QTest::addColumn<QString>("said");
    QTest::newRow("no id") << "ncclGetUniqueId:1:2"
                           << "starting NCCL: NCCL error 2";
    QTest::newRow("cannot join") << "ncclCommInitRank:1:5:1"
                                 << "joining GPUs by NCCL: NCCL error 5";
    QTest::newRow("refused") << "ncclAllReduce:3:2:1"
                             << "all-reduce: NCCL error 2 (emulated system error)";
    QTest::newRow("fails later") << "ncclAllReduce:3:106:0"
                                 << "exchanging between GPUs: NCCL error 6";
    QTest::newRow("dies joining") << "ncclCommInitRank:1:-1:1"
                                  << "rank 1 ended with code 9";
    QTest::newRow("dies") << "ncclAllReduce:4:-1:1"
                          << "rank 1 ended with code 9";
    QTest::newRow("rank 0 dies") << "ncclAllReduce:4:-1:0"
                                 << "rank 0 ended with code 9";
  }
  void faults() {
    QFETCH(QString, fault);
    QFETCH(QString, said);
    const std::string stepped = stepped_with(small_step(), fault.toLatin1());
    QVERIFY2(stepped.find(said.toStdString()) != std::string::npos, stepped.c_str());
    QVERIFY(gpu_->lines().back()["type"] == "error");
    if (!fault.startsWith("ncclAllReduce:3") && !fault.endsWith("-1:1")) return;  // the others end in the same way
    // Of several exchanges each says why it was not measured, until so many have failed that the rest is left out.
    ProbeJob job = exchanges_on(2);
    job.collectives.resize(5);
    qputenv("TURNPOINT_EMULATED_NCCL", fault.toLatin1());
    const auto messages = run_probe(launch(), job, {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    QCOMPARE(messages->items().size(), std::size_t(5));
    for (std::size_t i = 0; i < 5; ++i) {
      const std::string& why = messages->items()[i].not_measured;
      QVERIFY2(why.find(i < 3 ? said.toStdString() : "left out") != std::string::npos, why.c_str());
    }
    QCOMPARE(messages->result()->restarts, 3);
  }

  /// One exchange that fails costs what its own ranks do, not the others.
  void one_failure_is_survived() {
    ProbeJob job = exchanges_on(2);
    std::erase_if(job.collectives, [](const ProbeCollective& c) { return c.bytes != 4096; });
    qputenv("TURNPOINT_EMULATED_NCCL", "ncclBroadcast:1:3");
    const auto messages = run_probe(launch(), job, {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    int failed = 0;
    for (const auto& item : messages->items()) failed += item.not_measured.empty() ? 0 : 1;
    QCOMPARE(failed, 1);
    QCOMPARE(messages->items().size(), job.items());
  }
};

QTEST_GUILESS_MAIN(GpuRanksTest)
#include "gpu_ranks_test.moc"
