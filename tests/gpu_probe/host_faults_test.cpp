// SPDX-License-Identifier: Apache-2.0
// Whatever goes wrong on one of several hosts ends all of them, in time, in one error that names it.
#include <QTcpSocket>

#include "core/validation/placement_step.h"
#include "gpu_probe/placements.h"
#include "gpu_probe/probe_hosts.h"
#include "gpu_probe/step_jobs.h"
#include "gpu_probe/step_models.h"
#include "send_signal.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

/// A placement on two devices that never ends, with transfers in both directions.
StepJob long_placement() {
  const auto scenario = scenario_on(block(32, 8, 64, 4), "v100-16gb-1x2");
  std::mt19937_64 random(1);
  auto job = step_job_of(*scenario, placement_by_chance(*scenario, random, false), {});
  if (!job) qFatal("%s", job.error().message().c_str());
  job->backend = ProbeBackend::cpu;
  job->prove = false;
  job->steps = 100'000;
  job->budget_s = 600;
  return *job;
}

}  // namespace

class HostFaultsTest : public QObject {
  Q_OBJECT

 private slots:
  void ranks_that_never_come() {
    Host first(0, 4, meeting(), {"--wait", "1.5"});
    Host second(2, 4, first.process.arguments()[7], {"--wait", "20"});
    first.start(write_probe_job(small_job(4)));
    second.start();
    QVERIFY(first.finished() && second.finished());
    QCOMPARE(first.process.exitCode(), 5);
    QVERIFY2(first.error().contains("ranks 1 and 3 did not come"), first.error().toUtf8());
    QVERIFY2(first.error().contains("within 1.5 s"), first.error().toUtf8());
  }

  void nobody_listens_there() {
    Host alone(1, 2, free_port(), {"--wait", "0.5"});
    alone.start();
    QVERIFY(alone.finished());
    QCOMPARE(alone.process.exitCode(), 5);
    QVERIFY(alone.lines().isEmpty());
    QVERIFY2(alone.complaint().contains("rank 1: no connection to 127.0.0.1:"), alone.complaint().toUtf8());
    Host lost(1, 2, "no-such-host.invalid:4711", {"--wait", "0.5"});
    lost.start();
    QVERIFY(lost.finished());
    QVERIFY2(lost.complaint().contains("the host 'no-such-host.invalid' is not known"), lost.complaint().toUtf8());
  }

  void a_port_that_is_taken() {
    QTcpServer other;
    QVERIFY(other.listen(QHostAddress::LocalHost));
    Host host(0, 2, QString("127.0.0.1:%1").arg(other.serverPort()));
    host.start(write_probe_job(small_job(2)));
    QVERIFY(host.finished());
    QCOMPARE(host.process.exitCode(), 5);
    QVERIFY2(host.error().contains("Address already in use"), host.error().toUtf8());
  }

  // Whoever does not know the token is sent away; the run goes on, or says why nobody came.
  void a_wrong_token() {
    const QString at = free_port();
    Host first(0, 2, at, {"--wait", "3"}), stranger(1, 2, at, {"--token", "other"});
    first.start(write_probe_job(small_job(2)));
    QVERIFY(first.wait_for("waiting for rank 1"));
    stranger.start();
    QVERIFY(stranger.finished() && first.finished());
    QVERIFY2(stranger.complaint().contains("refused by rank 0: wrong token"), stranger.complaint().toUtf8());
    QVERIFY2(first.error().contains("rank 1 did not come") &&
                 first.error().contains("1 connection was refused, the last one because: wrong token"),
             first.error().toUtf8());
  }

  void noise_at_the_door() {
    const QString at = free_port();
    auto list = hosts(2, at);
    list[0]->start(write_probe_job(small_job(2)));
    QVERIFY(list[0]->wait_for("waiting for rank 1"));
    const auto number = static_cast<quint16>(at.mid(at.indexOf(':') + 1).toInt());
    QByteArray noise;
    for (int i = 0; i < 100'000; ++i) noise += static_cast<char>(i * 7919 >> 3 | 1);
    noise.replace('\n', 'x');
    // The last two know the token, and say the rest in words of the wrong kind.
    QTcpSocket sockets[7];
    const QByteArray words[7] = {"GET / HTTP/1.1\r\n\r\n", noise, "{\"token\":\"word\"", "\n\n\n", "",
                                 "{\"token\":\"word\",\"rank\":\"x\"}\n",
                                 "{\"token\":\"word\",\"rank\":1,\"size\":2,\"node\":[1]}\n"};
    for (int i = 0; i < 7; ++i) {
      sockets[i].connectToHost(QHostAddress::LocalHost, number);
      QVERIFY(sockets[i].waitForConnected(5000));
      sockets[i].write(words[i]);
      sockets[i].waitForBytesWritten(200);
    }
    QTest::qWait(200);
    list[1]->start();
    QVERIFY(all_end(list));
    QVERIFY2(list[0]->process.exitCode() == 0, list[0]->said.right(300));
  }

  void versions_and_ranks_that_do_not_fit() {
    const auto answer = [&](const QByteArray& hello, const char* wait = "60") {
      const QString at = free_port();
      Host first(0, 2, at, {"--wait", wait});
      first.start(write_probe_job(small_job(2)));
      if (!first.wait_for("waiting for rank 1")) return QString("never began");
      QTcpSocket other;
      other.connectToHost(QHostAddress::LocalHost, static_cast<quint16>(at.mid(at.indexOf(':') + 1).toInt()));
      if (!other.waitForConnected(5000)) return QString("not connected");
      other.write(hello + "\n");
      other.waitForBytesWritten(1000);
      return first.finished() && first.process.exitCode() == 5 ? first.error() : QString("went on");
    };
    const QString version = answer(R"({"token":"word","protocol":2,"version":"9.9","rank":1,"size":2,"node":"b"})");
    QVERIFY2(version.contains("rank 1 on b is turnpoint-probe 9.9") && version.contains("same version"),
             version.toUtf8());
    const QString protocol = answer(R"({"token":"word","protocol":7,"rank":1,"size":2,"node":"b"})");
    QVERIFY2(protocol.contains("(protocol 7)"), protocol.toUtf8());
    const QString size = answer(R"({"token":"word","protocol":2,"version":"0.1.0","rank":1,"size":3,"node":"b"})");
    QVERIFY2(size.contains("rank 1 of 3 on b does not belong to a run of 2"), size.toUtf8());
    // Sent away, and the run waits on for another one.
    const QString types = answer(R"({"token":"word","protocol":"1","version":2,"rank":[],"size":{},"node":3})", "3");
    QVERIFY2(!types.contains("went on") && !types.contains("errors"), types.toUtf8());
  }

  void a_rank_that_dies_data() {
    QTest::addColumn<QString>("what");
    QTest::addColumn<int>("which");
    QTest::newRow("measuring, rank 1") << "kernels" << 1;
    QTest::newRow("a step, rank 1") << "plan" << 1;
    QTest::newRow("a step, rank 0") << "plan" << 0;
    QTest::newRow("a placed step, rank 1") << "placement" << 1;
    QTest::newRow("a placed step, rank 0") << "placement" << 0;
  }

  void a_rank_that_dies() {
    QFETCH(QString, what);
    QFETCH(int, which);
    const bool step = what != "kernels";
    auto list = hosts(2, meeting());
    start(list, what == "placement" ? write_step_job(long_placement())
                : step              ? write_step_job(test::long_job())
                                    : write_probe_job(endless_job(2)));
    QVERIFY(list[0]->wait_for(step ? "timing steps" : "all_reduce"));
    const auto victims = list[static_cast<std::size_t>(which)]->ranks();
    if (victims.empty()) QSKIP("this kernel does not list children");
    QCOMPARE(victims.size(), std::size_t(1));
    QVERIFY(send_signal(victims[0], SIGKILL));
    if (!step) {  // costs the item, and the run goes on without it
      QVERIFY(all_end(list));
      const auto items = list[0]->lines("item");
      QCOMPARE(items.size(), qsizetype(1));
      QVERIFY2(items[0]["not_measured"].toString().contains("rank 1 was ended by signal 9"),
               QJsonDocument(items[0]).toJson());
      QCOMPARE(list[0]->process.exitCode(), 0);
      return;
    }
    QVERIFY(all_end(list));
    QCOMPARE(list[0]->process.exitCode(), 5);
    QVERIFY2(list[0]->error().contains(QString("rank %1 was ended by signal 9").arg(which)), list[0]->error().toUtf8());
  }

  // Behind an item that takes a rank on another host down, all start anew and measure the rest.
  void a_crash_costs_one_item() {
    auto list = hosts(2, meeting());
    ProbeJob job = small_job(2);
    const auto rest = job.collectives;
    job.operators.clear();
    job.item_s = 3;
    job.collectives = {{Collective::all_reduce, 2, 1 << 20}, {Collective::all_gather, 2, 4096}};
    start(list, write_probe_job(job));
    QVERIFY(list[0]->wait_for("all_reduce"));
    const auto victims = list[1]->ranks();
    if (victims.empty()) QSKIP("this kernel does not list children");
    QVERIFY(send_signal(victims[0], SIGKILL));
    QVERIFY(all_end(list));
    const auto items = list[0]->lines("item");
    QCOMPARE(items.size(), qsizetype(2));
    QVERIFY(items[0]["not_measured"].toString().contains("rank 1 was ended by signal 9"));
    QVERIFY(items[1]["time_s"].toDouble() > 0);
    QCOMPARE(list[0]->lines().last()["restarts"].toInt(), 1);
  }

  void a_host_that_dies_data() {
    QTest::addColumn<int>("which");
    QTest::newRow("another one") << 1;
    QTest::newRow("the controlling one") << 0;
  }

  void a_host_that_dies() {
    QFETCH(int, which);
    auto list = hosts(3, meeting());
    StepJob job = test::long_job();
    start(list, write_probe_job(endless_job(3)));
    QVERIFY(list[0]->wait_for("all_reduce"));
    std::vector<int> ranks;
    for (auto& host : list)
      for (const int rank : host->ranks()) ranks.push_back(rank);
    if (ranks.empty()) QSKIP("this kernel does not list children");
    QCOMPARE(ranks.size(), std::size_t(3));
    list[static_cast<std::size_t>(which)]->process.kill();
    QVERIFY(all_end(list, ranks));
    if (which == 0) {
      QVERIFY2(list[1]->complaint().contains("the connection to rank 0 was lost"), list[1]->complaint().toUtf8());
    } else {
      QCOMPARE(list[0]->process.exitCode(), 5);
      QVERIFY2(list[0]->error().contains("host1") && list[0]->error().contains("lost"), list[0]->error().toUtf8());
    }
  }

  void a_stop_ends_all_data() {
    QTest::addColumn<int>("which");
    QTest::newRow("the controlling one") << 0;
    QTest::newRow("another one") << 1;
  }

  void a_stop_ends_all() {
    QFETCH(int, which);
    auto list = hosts(2, meeting());
    start(list, write_step_job(test::long_job()));
    QVERIFY(list[0]->wait_for("timing steps"));
    std::vector<int> ranks;
    for (auto& host : list)
      for (const int rank : host->ranks()) ranks.push_back(rank);
    QVERIFY(send_signal(list[static_cast<std::size_t>(which)]->process.processId(), SIGTERM));
    QVERIFY(all_end(list, ranks));
    QVERIFY2(list[0]->error().contains("stopped by signal 15"), list[0]->error().toUtf8());
    QCOMPARE(list[static_cast<std::size_t>(which)]->process.exitCode(), 130);
  }

  void a_disk_without_room() {
    auto list = hosts(2, meeting());
    list[0]->process.setStandardOutputFile("/dev/full");
    start(list, write_probe_job(endless_job(2)));
    QVERIFY(all_end(list));
    QCOMPARE(list[0]->process.exitCode(), 5);
  }
};

QTEST_GUILESS_MAIN(HostFaultsTest)
#include "host_faults_test.moc"
