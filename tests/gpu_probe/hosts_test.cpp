// SPDX-License-Identifier: Apache-2.0
// What several processes of turnpoint-probe measure and carry out together.
#include "core/validation/compare_placement.h"
#include "core/validation/placement_step.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/probe_hosts.h"
#include "gpu_probe/recurrent_models.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;

class HostsTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

 private slots:
  // Links inside a node and between nodes, in one run; nodes of one rank and of several.
  void measures_both_levels_data() {
    QTest::addColumn<int>("processes");
    QTest::addColumn<int>("ranks");
    QTest::newRow("two hosts of one rank") << 2 << 2;
    QTest::newRow("two hosts of two ranks") << 2 << 4;
    QTest::newRow("three hosts") << 3 << 3;
  }

  void measures_both_levels() {
    QFETCH(int, processes);
    QFETCH(int, ranks);
    auto list = hosts(processes, free_port());
    const ProbeJob job = small_job(ranks);
    start(list, write_probe_job(job));
    QVERIFY(all_end(list));
    for (auto& host : list) QVERIFY2(host->process.exitCode() == 0, host->complaint().toUtf8());
    for (std::size_t i = 1; i < list.size(); ++i) QVERIFY(list[i]->lines().isEmpty());
    const auto items = list[0]->lines("item");
    QCOMPARE(items.size(), static_cast<qsizetype>(job.items()));
    const int per_node = ranks / processes;
    for (const auto& item : items) {
      QVERIFY2(item["time_s"].toDouble() > 0, QJsonDocument(item).toJson());
      if (!item.contains("collective")) continue;
      const auto group = item["group"].toObject();
      const int size = group["size"].toInt(), nodes = (size + per_node - 1) / per_node;
      QCOMPARE(group["nodes"].toInt(), nodes);
      QCOMPARE(group["per_node"].toInt(), size / nodes);
      QCOMPARE(item["implementation"].toString(), QString(nodes > 1 ? "TCP" : "shared memory"));
    }
    const auto hello = list[0]->lines("hello").value(0);
    QCOMPARE(hello["devices"].toArray().size(), qsizetype(ranks));
    QCOMPARE(hello["nodes"].toArray().size(), qsizetype(processes));
    QCOMPARE(hello["nodes"].toArray()[1].toObject()["name"].toString(), QString("host1"));
    QCOMPARE(hello["nodes"].toArray()[1].toObject()["ranks"].toInt(), per_node);
    QCOMPARE(list[0]->lines().last()["type"].toString(), QString("result"));
  }

  // Processes of one host share memory, whoever has started them.
  void processes_of_one_host_share_memory() {
    auto list = hosts(2, meeting(), {"--node", "same"});
    start(list, write_probe_job(small_job(2)));
    QVERIFY(all_end(list));
    for (const auto& item : list[0]->lines("item"))
      if (item.contains("collective")) QCOMPARE(item["implementation"].toString(), QString("shared memory"));
    QCOMPARE(list[0]->lines("hello").value(0)["nodes"].toArray().size(), qsizetype(1));
  }

  // Every plan that one host carries out is carried out by several: same bytes, same memory, and the proof holds.
  void plans_are_carried_out_data() {
    QTest::addColumn<int>("processes");
    QTest::addColumn<int>("per_host");
    QTest::newRow("four hosts") << 4 << 1;
    QTest::newRow("two hosts of two processes") << 4 << 2;
    QTest::newRow("two hosts of one process, two ranks each") << 2 << 1;
  }

  void plans_are_carried_out() {
    QFETCH(int, processes);
    QFETCH(int, per_host);
    for (std::size_t model : {std::size_t(0), test::step_models().size() - 1}) {
      const auto scenario = test::scenario_on(test::step_models()[model].make(), "v100-16gb-2x2");
      const auto result = test::run("ft:micro-batches=1", scenario);
      QVERIFY(result.has_value());
      const StepJob job = test::job_of(scenario, (*result)->plans->sharding(0));
      std::optional<ProbeHello> hello;
      const auto apart =
          measure_step({kProbe.toStdString(), 30, 0.4, {}, launcher(folder_, processes, per_host)}, job, {}, &hello);
      QVERIFY2(apart.has_value(), apart ? "" : apart.error().message().c_str());
      const std::string what = test::fault(*scenario, job, *apart);
      QVERIFY2(what.empty(), what.c_str());
      const auto here = measure_step({kProbe.toStdString(), 30, 0.4, {}, {}}, job, {});
      QVERIFY2(here.has_value(), here ? "" : here.error().message().c_str());
      QCOMPARE(apart->received_bytes, here->received_bytes);
      QCOMPARE(apart->memory.counted_peak, here->memory.counted_peak);
      QCOMPARE(apart->numerics->loss_error, here->numerics->loss_error);
      QCOMPARE(apart->numerics->gradient_error, here->numerics->gradient_error);
      QCOMPARE(hello->ranks, 4);
      const std::string where =
          "ranks on " + std::to_string(processes / per_host) + " hosts: shared memory inside a node";
      QVERIFY2(apart->notes.back().starts_with(where), apart->notes.back().c_str());
    }
  }

  // And every placement: the same bytes between the same devices, and the proof holds.
  void placements_are_carried_out_data() {
    plans_are_carried_out_data();
    QTest::newRow("one host of two processes") << 2 << 2;
  }

  void placements_are_carried_out() {
    QFETCH(int, processes);
    QFETCH(int, per_host);
    test::SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    std::mt19937_64 random(static_cast<std::uint64_t>(processes + 10 * per_host));
    for (const bool unrolled : {false, true}) {
      const auto scenario = scenario_on(unrolled ? recurrent_stack(4) : block(), "v100-16gb-2x2");
      const auto plan = placement_by_chance(*scenario, random, unrolled, unrolled, processes != 4);
      StepChoice choice;
      choice.backend = ProbeBackend::cpu;
      choice.warm_up = 1, choice.steps = 3, choice.budget_s = 20;
      const auto job = step_job_of(*scenario, plan, choice);
      QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
      std::string wrong;
      const auto check = [&](const std::string& line) {
        if (const auto found = schemas.check("probe-message@1", nlohmann::json::parse(line)); !found.empty())
          wrong = line + ": " + found;
      };
      const auto apart =
          measure_step({kProbe.toStdString(), 30, 0.4, check, launcher(folder_, processes, per_host)}, *job, {});
      QVERIFY2(apart.has_value(), apart ? "" : apart.error().message().c_str());
      QVERIFY2(wrong.empty(), wrong.c_str());
      const auto here = measure_step({kProbe.toStdString(), 30, 0.4, {}, {}}, *job, {});
      QVERIFY2(here.has_value(), here ? "" : here.error().message().c_str());
      QVERIFY(apart->numerics && apart->numerics->gradient_error <= apart->numerics->tolerance);
      QCOMPARE(apart->numerics->loss_error, here->numerics->loss_error);
      QCOMPARE(apart->numerics->gradient_error, here->numerics->gradient_error);
      QCOMPARE(apart->numerics->update_error, here->numerics->update_error);
      QCOMPARE(apart->planned_bytes, here->planned_bytes);
      QCOMPARE(apart->received_bytes, here->received_bytes);
      QCOMPARE(apart->transfers.size(), here->transfers.size());
      for (std::size_t t = 0; t < here->transfers.size(); ++t) {
        QCOMPARE(apart->transfers[t].received_bytes, here->transfers[t].received_bytes);
        QVERIFY(apart->transfers[t].time.samples == 3 && apart->transfers[t].time.min_s >= 0);
      }
      for (std::size_t t = 0; t < here->tasks.size(); ++t)
        QVERIFY(apart->tasks[t].time.samples == 3 && apart->tasks[t].time.min_s > 0);
      QCOMPARE(apart->devices.size(), std::size_t(4));
      for (std::size_t d = 0; d < 4; ++d) {
        QCOMPARE(apart->devices[d].persistent, here->devices[d].persistent);
        QVERIFY(apart->devices[d].peak >= apart->devices[d].persistent);
      }
      const auto report = compare_placement(*scenario, plan, *apart, {"placed", "", false});
      QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
      QVERIFY(report->step.measured && report->collectives.size() == apart->transfers.size());
      QCOMPARE(schemas.check("validation@1", nlohmann::json::parse(write_validation(*report).dump())), std::string());
      const std::string where =
          processes == per_host ? std::string("ranks on 1 host: shared memory")
                                : "ranks on " + std::to_string(processes / per_host) + " hosts: shared memory inside";
      QVERIFY2(apart->notes.back().starts_with(where), apart->notes.back().c_str());
    }
  }

  void more_processes_than_ranks_and_uneven_ones() {
    auto list = hosts(3, meeting());
    start(list, write_probe_job(small_job(2)));
    QVERIFY(all_end(list));
    for (auto& host : list) QVERIFY2(host->process.exitCode() == 0, host->complaint().toUtf8());
    const auto warnings = QJsonDocument(list[0]->lines("hello").value(0)["warnings"].toArray()).toJson();
    QVERIFY2(warnings.contains("1 of the 3 processes that were started take no part"), warnings);

    Host odd(0, 3, meeting());
    odd.start(write_probe_job(small_job(4)));
    QVERIFY(odd.finished());
    QVERIFY2(odd.error().contains("4 ranks cannot be spread evenly over the 3 processes"), odd.error().toUtf8());
  }

  void two_runs_at_once() {
    auto one = hosts(2, meeting()), other = hosts(2, free_port());
    start(one, write_probe_job(small_job(2)));
    start(other, write_probe_job(small_job(2)));
    QVERIFY(all_end(one) && all_end(other));
    QCOMPARE(one[0]->lines().last()["type"].toString(), QString("result"));
    QCOMPARE(other[0]->lines().last()["type"].toString(), QString("result"));
  }

  void mpirun_starts_it_data() {
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<bool>("apart");
    QTest::addColumn<QString>("carrier");
    QTest::addColumn<bool>("placed");
    QTest::newRow("one host") << QStringList{} << false << "1 host: shared memory" << false;
    QTest::newRow("two hosts over TCP") << QStringList{"--transport", "tcp"} << true << "TCP between nodes" << false;
    QTest::newRow("two hosts") << QStringList{} << true << "Open MPI" << false;
    QTest::newRow("MPI inside a host") << QStringList{"--transport", "mpi"} << false << "1 host: Open MPI" << false;
    QTest::newRow("a placement on two hosts") << QStringList{} << true << "Open MPI" << true;
  }
  void mpirun_starts_it() {
    QFETCH(QStringList, options);
    QFETCH(bool, apart);
    QFETCH(QString, carrier);
    QProcess asked;
    asked.start("mpirun", {"--version"});
    if (!asked.waitForStarted(5000)) QSKIP("mpirun is not installed");
    asked.waitForFinished(20000);
    if (!asked.readAllStandardOutput().contains("Open MPI")) QSKIP("the mpirun here is not Open MPI's");
    if (carrier.contains("MPI") && !QFile::exists(TURNPOINT_BINARY_DIR "/turnpoint-probe-mpi.so"))
      QSKIP("no MPI was found when this was built");
    for (const char* name :
         {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "OMPI_MCA_rmaps_base_oversubscribe"})
      qputenv(name, "1");
    const auto scenario = scenario_on(step_models()[0].make(), "v100-16gb-1x2");
    const auto result = test::run("ft:micro-batches=1", scenario);
    StepJob job = job_of(scenario, (*result)->plans->sharding(0));
    QFETCH(bool, placed);
    if (placed) {
      StepChoice choice;
      choice.backend = ProbeBackend::cpu;
      choice.warm_up = 1, choice.steps = 3, choice.budget_s = 20;
      std::mt19937_64 random(2);
      job = *step_job_of(*scenario, placement_by_chance(*scenario, random, false), choice);
    }
    // Each process has its own part of mpirun's command, so that it stands in a script.
    const std::string probe = kProbe.toStdString();
    std::vector<std::string> words{"mpirun", "-n", "1", probe, "--job", "-"};
    for (const auto& option : options) words.push_back(option.toStdString());
    words.insert(words.end(), {":", "-n", "1", probe});
    if (apart) words.insert(words.end(), {"--node", "other"});
    for (const auto& option : options) words.push_back(option.toStdString());
    const QString path = folder_.filePath("mpi");
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("#!/bin/sh\nexec");
    for (const auto& word : words) file.write((" '" + word + "'").c_str());
    file.write(" --job -\n");
    file.close();
    const auto measured = measure_step({probe, 30, 1, {}, {"sh", path.toStdString()}}, job, {});
    QVERIFY2(measured.has_value(), measured ? "" : measured.error().message().c_str());
    if (placed) {
      QVERIFY(measured->numerics && measured->numerics->update_error <= measured->numerics->tolerance);
      QVERIFY(measured->received_bytes == measured->planned_bytes && measured->planned_bytes > 0);
      const bool said = std::any_of(measured->notes.begin(), measured->notes.end(), [](const std::string& note) {
        return note.find("transfers of the placement went over TCP") != std::string::npos;
      });
      QVERIFY(said);
    } else {
      const std::string what = fault(*scenario, job, *measured);
      QVERIFY2(what.empty(), what.c_str());
    }
    QVERIFY2(measured->notes.back().find(carrier.toStdString()) != std::string::npos, measured->notes.back().c_str());
  }
};

QTEST_GUILESS_MAIN(HostsTest)
#include "hosts_test.moc"
