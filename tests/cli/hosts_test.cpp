// SPDX-License-Identifier: Apache-2.0
// `measure` and `validate` over several hosts: started by a launcher, and carried there and back by hand.
#include <unistd.h>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/result_folder.h"

using namespace turnpoint;
using nlohmann::json;
using test::run;

class CliHostsTest : public QObject, test::ResultFolder {
  Q_OBJECT

  /// Starts the probe once for each host, as mpirun would.
  QString launcher(int hosts) {
    const QString script = path("launcher");
    QFile file(script);
    if (file.open(QIODevice::WriteOnly))
      file.write(
          "#!/bin/sh\nn=$1 at=$2; shift 2; r=1\n"
          "while [ $r -lt $n ]; do\n"
          "  \"$@\" --rank $r --size $n --rendezvous $at --token w --node h$r </dev/null &\n"
          "  r=$((r + 1))\ndone\n"
          "exec \"$@\" --rank 0 --size $n --rendezvous $at --token w --node h0\n");
    return QString("sh '%1' %2 local:cli-%3-%4").arg(script).arg(hosts).arg(getpid()).arg(++runs_);
  }
  int runs_ = 0;

 private slots:
  void initTestCase() {
    QVERIFY(folder_.isValid());
    // 'local' of this test, and what it keeps, are nobody else's.
    qputenv("XDG_DATA_HOME", folder_.path().toUtf8());
    qputenv("XDG_CACHE_HOME", folder_.path().toUtf8());
    const auto found = run({"search", "builtin:lenet", "--batch", "8", "--hardware", "v100-16gb-2x1", "--plans",
                            "--out", path("result.json")});
    QVERIFY2(found.code == 0, found.err.constData());
  }

  void a_profile_of_two_hosts() {
    const auto done = run({"measure", "--ranks", "4", "--launcher", launcher(2), "--budget", "5", "--item", "0.005",
                           "--out", path("profile.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json profile = read("profile.json");
    QCOMPARE(schemas_.check("hardware-profile@1", profile), std::string());
    QCOMPARE(profile["nodes"].get<int>(), 2);
    QCOMPARE(profile["devices_per_node"].get<int>(), 2);
    QCOMPARE(profile["name"].get<std::string>(), std::string("cpu-2x2"));
    bool inside = false, between = false;
    for (const auto& collective : profile["collectives"])
      (collective["group"]["nodes"].get<int>() > 1 ? between : inside) = true;
    QVERIFY(inside && between);
    // A cluster is not this machine.
    QVERIFY(!QFile::exists(path("turnpoint/local.json")));
    const auto used = run({"search", "builtin:lenet", "--hardware", path("profile.json")});
    QVERIFY2(used.code == 0, used.err.constData());
  }

  void a_launcher_wants_to_know_the_ranks() {
    const auto done = run({"measure", "--launcher", "mpirun -n 2", "--out", path("none.json")});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("--ranks"), done.err.constData());
    const auto quote = run({"validate", path("result.json"), "--launcher", "mpirun 'x"});
    QCOMPARE(quote.code, test::kUsage);
    QVERIFY2(quote.err.contains("is not closed"), quote.err.constData());
  }

  void a_plan_is_validated_on_two_hosts() {
    const auto done = run({"validate", path("result.json"), "--steps", "3", "--launcher", launcher(2), "--record",
                           path("run.jsonl"), "--out", path("report.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    QVERIFY2(done.err.contains("ranks on 2 hosts") && done.err.contains("TCP between nodes"), done.err.constData());
    json report = read("report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QCOMPARE(report["ranks"].get<int>(), 2);
    QCOMPARE(report["bytes_sent"]["predicted"], report["bytes_sent"]["measured"]);
    // What was recorded says the same when it is read again.
    const auto again = run(
        {"validate", path("result.json"), "--steps", "3", "--from", path("run.jsonl"), "--out", path("again.json")});
    QVERIFY2(again.code == 0, again.err.constData());
    json second = read("again.json");
    second.erase("date"), report.erase("date");
    QVERIFY(second == report);
  }

  // The job is carried to the hosts, run there, and its recording brought back.
  void by_hand() {
    const auto written = run({"validate", path("result.json"), "--steps", "3", "--job-out", path("job.json")});
    QVERIFY2(written.code == 0, written.err.constData());
    QCOMPARE(schemas_.check("step-job@1", read("job.json")), std::string());
    QProcess hosts[2];
    const QString at = QString("local:cli-%1-hand").arg(getpid());
    for (int rank = 0; rank < 2; ++rank) {
      QStringList options{"--size", "2", "--rendezvous", at, "--token", "w", "--rank", QString::number(rank)};
      hosts[rank].start(TURNPOINT_BINARY_DIR "/turnpoint-probe", QStringList{"--job", path("job.json")} + options);
    }
    QVERIFY(hosts[0].waitForFinished(60000) && hosts[1].waitForFinished(60000));
    QFile recording(path("hand.jsonl"));
    QVERIFY(recording.open(QIODevice::WriteOnly));
    recording.write(hosts[0].readAllStandardOutput());
    recording.close();
    const auto done = run(
        {"validate", path("result.json"), "--steps", "3", "--from", path("hand.jsonl"), "--out", path("hand.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    QCOMPARE(read("hand.json")["ranks"].get<int>(), 2);
    const auto broken = run({"validate", path("result.json"), "--from", path("job.json"), "--out", path("x.json")});
    QCOMPARE(broken.code, test::kBadInput);
    QVERIFY(!QFile::exists(path("x.json")));
    const auto both = run({"validate", path("result.json"), "--from", path("hand.jsonl"), "--plans", "3"});
    QCOMPARE(both.code, test::kUsage);
  }

  void a_launcher_that_is_not_there() {
    const auto done = run({"validate", path("result.json"), "--launcher", "no-such-mpirun -n 2"});
    QCOMPARE(done.code, 5);
    QVERIFY2(done.err.contains("cannot be started: no-such-mpirun"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(CliHostsTest)
#include "hosts_test.moc"
