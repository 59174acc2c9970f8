// SPDX-License-Identifier: Apache-2.0
// GPUs of several hosts, all emulated: processes of turnpoint-probe that are started as mpirun would start them, with a
// GPU for each rank.
#include <QProcessEnvironment>

#include "core/validation/placement_step.h"
#include "gpu_probe/emulated_gpu/load.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/probe_hosts.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;

namespace {

/// Hosts with so many GPUs each, the `wanting`th of them without any.
test::Hosts gpu_hosts(int count, int gpus, int wanting = -1) {
  test::Hosts list = test::hosts(count, test::free_port());
  for (int i = 0; i < count; ++i) {
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    environment.insert("LD_LIBRARY_PATH", TURNPOINT_EMULATED_GPU_DIR ":" TURNPOINT_EMULATED_NCCL_DIR);
    environment.insert("TURNPOINT_EMULATED_GPUS", QString::number(i == wanting ? 0 : gpus));
    environment.insert("TURNPOINT_EMULATED_HOST", QString::number(i));
    list[static_cast<std::size_t>(i)]->process.setProcessEnvironment(environment);
  }
  return list;
}

ProbeJob exchanges(int ranks) {
  ProbeJob job = test::small_job(ranks);
  job.backend = ProbeBackend::cuda;
  job.operators.clear();
  return job;
}

}  // namespace

class GpuHostsTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

  /// Of rank 0's lines; empty: nothing.
  std::string wrong_with(const test::Host& host) {
    for (const auto& line : host.said.split('\n'))
      if (!line.isEmpty())
        if (const auto wrong = schemas_.check("probe-message@1", nlohmann::json::parse(line.toStdString()));
            !wrong.empty())
          return line.toStdString() + ": " + wrong;
    return {};
  }

 private slots:
  void initTestCase() {
    if (const auto why = test::no_emulated_gpu(); !why.empty()) QSKIP(why.c_str());
  }

  void measures_both_levels_data() {
    QTest::addColumn<int>("processes");
    QTest::addColumn<int>("ranks");
    QTest::newRow("two hosts of one GPU") << 2 << 2;
    QTest::newRow("two hosts of two GPUs") << 2 << 4;
  }
  void measures_both_levels() {
    QFETCH(int, processes);
    QFETCH(int, ranks);
    const int per_node = ranks / processes;
    auto list = gpu_hosts(processes, per_node);
    const ProbeJob job = exchanges(ranks);
    test::start(list, write_probe_job(job));
    QVERIFY(test::all_end(list));
    for (auto& host : list) QVERIFY2(host->process.exitCode() == 0, host->complaint().toUtf8());
    const auto items = list[0]->lines("item");
    QCOMPARE(items.size(), static_cast<qsizetype>(job.items()));
    for (const auto& item : items) {
      QVERIFY2(item["time_s"].toDouble() > 0, QJsonDocument(item).toJson());
      const auto group = item["group"].toObject();
      const int size = group["size"].toInt(), nodes = (size + per_node - 1) / per_node;
      QCOMPARE(group["nodes"].toInt(), nodes);
      QCOMPARE(group["per_node"].toInt(), size / nodes);
      QCOMPARE(item["implementation"].toString(), QString("NCCL 2.27.3"));
    }
    const auto hello = list[0]->lines("hello").value(0);
    const auto devices = hello["devices"].toArray();
    QCOMPARE(devices.size(), qsizetype(ranks));
    for (int i = 0; i < ranks; ++i) {
      QCOMPARE(devices[i].toObject()["index"].toInt(), i);
      QCOMPARE(devices[i].toObject()["kind"].toString(), QString("cuda"));
      QCOMPARE(devices[i].toObject()["node"].toString(), QString("host%1").arg(i / per_node));
    }
    QCOMPARE(hello["nodes"].toArray().size(), qsizetype(processes));
    QCOMPARE(hello["transport"].toString(), QString("NCCL"));
    const std::string wrong = wrong_with(*list[0]);
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  void plans_are_carried_out() {
    const auto scenario = test::scenario_on(test::block(), "v100-16gb-2x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    QVERIFY(result.has_value());
    StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
    job.backend = ProbeBackend::cuda;
    auto list = gpu_hosts(2, 2);
    test::start(list, write_step_job(job));
    QVERIFY(test::all_end(list));
    for (auto& host : list) QVERIFY2(host->process.exitCode() == 0, (host->complaint() + list[0]->error()).toUtf8());
    const auto done = list[0]->lines("result").value(0);
    const auto numerics = done["numerics"].toObject();
    for (const char* error : {"loss_error", "activation_error", "gradient_error", "update_error"}) {
      QVERIFY(numerics.contains(error));
      QVERIFY2(numerics[error].toDouble() < 1e-4, error);
    }
    QCOMPARE(done["ranks"].toInt(), 4);
    QVERIFY(done["planned_bytes"].toDouble() > 0);
    QCOMPARE(done["received_bytes"].toDouble(), done["planned_bytes"].toDouble());
    const QByteArray notes = QJsonDocument(done["notes"].toArray()).toJson();
    QVERIFY2(notes.contains("a GPU for each of the 4 ranks") && notes.contains("ranks on 2 hosts"), notes);
    const std::string wrong = wrong_with(*list[0]);
    QVERIFY2(wrong.empty(), wrong.c_str());
  }

  void placements_are_carried_out() {
    const auto scenario = test::scenario_on(test::block(), "v100-16gb-2x2");
    std::mt19937_64 random(3);
    StepChoice choice;
    choice.backend = ProbeBackend::cuda;
    choice.warm_up = 1, choice.steps = 3, choice.budget_s = 30;
    const auto job = step_job_of(*scenario, test::placement_by_chance(*scenario, random, false), choice);
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    auto list = gpu_hosts(2, 2);
    test::start(list, write_step_job(*job));
    QVERIFY(test::all_end(list));
    for (auto& host : list) QVERIFY2(host->process.exitCode() == 0, (host->complaint() + list[0]->error()).toUtf8());
    const auto done = list[0]->lines("result").value(0);
    const auto numerics = done["numerics"].toObject();
    for (const char* error : {"loss_error", "activation_error", "gradient_error", "update_error"}) {
      QVERIFY(numerics.contains(error));
      QVERIFY2(numerics[error].toDouble() < 1e-4, error);
    }
    QCOMPARE(done["ranks"].toInt(), 4);
    QCOMPARE(done["devices"].toArray().size(), qsizetype(4));
    QVERIFY(done["planned_bytes"].toDouble() > 0);
    QCOMPARE(done["received_bytes"].toDouble(), done["planned_bytes"].toDouble());
    const QByteArray notes = QJsonDocument(done["notes"].toArray()).toJson();
    QVERIFY2(notes.contains("a GPU for each of the 4 ranks, transfers") && notes.contains("ranks on 2 hosts"), notes);
    const std::string wrong = wrong_with(*list[0]);
    QVERIFY2(wrong.empty(), wrong.c_str());

    // One of them dies in the middle of it.
    auto broken = gpu_hosts(2, 2);
    QProcessEnvironment environment = broken[1]->process.processEnvironment();
    environment.insert("TURNPOINT_EMULATED_NCCL", "ncclRecv:9:-1:1");
    broken[1]->process.setProcessEnvironment(environment);
    test::start(broken, write_step_job(*job));
    QVERIFY(test::all_end(broken));
    QVERIFY2(broken[0]->error().contains("rank 3 ended with code 9"), broken[0]->error().toUtf8());
  }

  void a_host_with_too_few_gpus() {
    for (const auto& [gpus, wanting, said] :
         {std::tuple(1, -1, ": there is no GPU 1: the driver shows 1"), std::tuple(2, 1, "shows no device")}) {
      auto list = gpu_hosts(2, gpus, wanting);
      test::start(list, write_probe_job(exchanges(4)));
      QVERIFY(test::all_end(list));
      QVERIFY2(list[0]->error().contains(said), list[0]->error().toUtf8());
    }
  }

  void hosts_without_a_driver() {
    if (QFile::exists("/proc/driver/nvidia/version")) QSKIP("there is a real driver here");
    auto list = test::hosts(2, test::meeting());
    test::start(list, write_probe_job(exchanges(2)));
    QVERIFY(test::all_end(list));
    QVERIFY2(list[0]->error().contains("no NVIDIA driver here"), list[0]->error().toUtf8());
    QVERIFY(list[0]->lines("error")[0]["hint"].toString().contains("CPU ranks"));
  }

  /// What an exchange between hosts dies of costs that item, and a host that is lost ends the run.
  void a_rank_or_host_dies() {
    auto list = gpu_hosts(2, 1);
    QProcessEnvironment environment = list[1]->process.processEnvironment();
    environment.insert("TURNPOINT_EMULATED_NCCL", "ncclBroadcast:1:-1");
    list[1]->process.setProcessEnvironment(environment);
    const ProbeJob job = exchanges(2);
    test::start(list, write_probe_job(job));
    QVERIFY(test::all_end(list));
    int failed = 0;
    for (const auto& item : list[0]->lines("item")) {
      if (!item.contains("not_measured")) continue;
      ++failed;
      QCOMPARE(item["collective"].toString(), QString());
      QVERIFY2(item["not_measured"].toString().contains("rank 1 ended with code 9"),
               item["not_measured"].toString().toUtf8());
    }
    QCOMPARE(failed, 1);
    QCOMPARE(list[0]->process.exitCode(), 0);
  }
};

QTEST_GUILESS_MAIN(GpuHostsTest)
#include "gpu_hosts_test.moc"
