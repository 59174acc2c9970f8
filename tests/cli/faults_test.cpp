// SPDX-License-Identifier: Apache-2.0
// Values that are none, interrupts, pipes, and machines that have run out of something, through the program itself.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>
#include <functional>

#include "sanitized.h"
#include "tests/cli/command_line.h"
#include "tests/send_signal.h"

using namespace turnpoint::test;

namespace {

const QStringList kSearch{"search", "builtin:lenet", "--hardware", "v100-16gb-1x4"};

/// The program under a limit that is set in its process alone.
Run limited(const QStringList& arguments, int what, rlim_t most) {
  QProcess process;
  process.setChildProcessModifier([=] {
    const rlimit limit{most, most};
    ::signal(SIGXFSZ, SIG_IGN);
    ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);  // what the test's own parent left open counts against the limit
    setrlimit(static_cast<__rlimit_resource>(what), &limit);
  });
  process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", arguments);
  Run result;
  if (!process.waitForFinished(120000) || process.exitStatus() != QProcess::NormalExit) return result;
  result.code = process.exitCode();
  result.out = process.readAllStandardOutput();
  result.err = process.readAllStandardError();
  return result;
}

}  // namespace

class FaultsTest : public QObject {
  Q_OBJECT

 private slots:
  void values_that_are_none_are_wrong_usage_data() {
    QTest::addColumn<QStringList>("arguments");
    for (const char* option : {"--batch", "--devices", "--memory-limit", "--method", "--precision", "--out"})
      QTest::newRow(option) << kSearch + QStringList{option, ""};
    QTest::newRow("inspect batch") << QStringList{"inspect", "builtin:lenet", "--batch", ""};
    QTest::newRow("no model") << QStringList{"inspect", ""};
    QTest::newRow("place") << QStringList{"place", "g.json", "--devices", "2", "--memory-limit", ""};
    for (const char* number : {"nan", "NaN", "-nan", "inf", "infinity", "nan(1)"}) {
      for (const char* option : {"--budget", "--item", "--refine", "--max-age"})
        QTest::addRow("measure %s %s", option, number) << QStringList{"measure", option, number, "--job-out", "j"};
      QTest::addRow("solve %s", number) << QStringList{"solve", "p.json", "--time-limit", number};
      QTest::addRow("validate %s", number) << QStringList{"validate", "r.json", "--budget", number};
    }
    for (const char* plans : {"-1", "0", "1.5", "1e3", "every", "99999999999999999999"})
      QTest::addRow("plans %s", plans) << kSearch + QStringList{"--max-plans", plans};
    QTest::newRow("seed") << QStringList{"place", "g.json", "--devices", "2", "--seed", "-1"};
    QTest::newRow("validate seed") << QStringList{"validate", "r.json", "--seed", "-1"};
  }
  void values_that_are_none_are_wrong_usage() {
    QFETCH(QStringList, arguments);
    const Run refused = run(arguments);
    QVERIFY2(refused.code == kUsage, refused.err);
    QCOMPARE(refused.err.count('\n'), 1);
    QVERIFY(refused.out.isEmpty());
  }

  // Fewer threads, and the same result; it waited for ever.
  void threads_that_cannot_be_started() {
    if (kSanitized) QSKIP(kOwnLimits);
    const Run few = run(kSearch + QStringList{"--threads", "1"});
    const Run many = limited(kSearch + QStringList{"--threads", "300"}, RLIMIT_AS, rlim_t(1500000) << 10);
    QVERIFY2(many.code == kDone, many.err);
    QVERIFY(few.object()["points"] == many.object()["points"]);
  }

  void memory_that_is_not_there() {
    if (kSanitized) QSKIP(kOwnLimits);
    const Run search = limited({"search", "builtin:bert-large", "--hardware", "v100-16gb-2x8", "--threads", "2"},
                               RLIMIT_AS, rlim_t(350000) << 10);
    QVERIFY2(search.code == kBadInput, search.err);
    QCOMPARE(search.err.trimmed(),
             QByteArray("turnpoint-cli: there is not enough memory for this (a smaller model or fewer devices)"));
  }

  void files_that_cannot_be_opened() {
    if (kSanitized) QSKIP(kOwnLimits);
    QTemporaryDir folder;
    const Run search = limited(kSearch + QStringList{"--out", folder.filePath("r.json")}, RLIMIT_NOFILE, 4);
    QVERIFY2(search.code == kBadInput, search.err);
    QVERIFY2(search.err.contains("Too many open files"), search.err);
    QVERIFY(QDir(folder.path()).entryList(QDir::Files).isEmpty());
  }

  void a_pipe_without_a_writer_is_refused() {
    QTemporaryDir folder;
    const QString pipe = folder.filePath("pipe");
    QCOMPARE(::mkfifo(qPrintable(pipe), 0600), 0);
    for (const QStringList& arguments : {QStringList{"inspect", pipe}, QStringList{"export", pipe, "--to", "json"},
                                         QStringList{"solve", pipe}, QStringList{"place", pipe, "--devices", "2"}}) {
      const Run refused = run(arguments);
      QVERIFY2(refused.code == kBadInput, refused.err);
      QVERIFY2(refused.err.contains("pipe: is "), refused.err);
    }
  }

  // Commands that watch for no stop end at the first signal; with 130, whichever it is.
  void a_signal_ends_every_command_data() {
    QTest::addColumn<int>("signal");
    QTest::newRow("terminate") << SIGTERM;
    QTest::newRow("interrupt") << SIGINT;
  }
  void a_signal_ends_every_command() {
    QFETCH(int, signal);
    QTemporaryDir folder;
    const QString pipe = folder.filePath("pipe");
    QCOMPARE(::mkfifo(qPrintable(pipe), 0600), 0);
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", {"export", pipe, "--to", "json"});  // waits two seconds
    QVERIFY(process.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(takes_signal(process.processId(), signal), 60000);
    QVERIFY(send_signal(process.processId(), signal));
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitStatus(), QProcess::NormalExit);
    QCOMPARE(process.exitCode(), kInterrupted);
  }

  void the_first_of_two_interrupts_says_what_the_second_does() {
    QTemporaryDir folder;
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli",
                  {"search", "builtin:bert-large", "--hardware", "v100-16gb-2x8", "--out", folder.filePath("r.json")});
    QVERIFY(process.waitForStarted());
    // It has asked for interrupts long before it has computed so much, and is far from its end.
    QTRY_VERIFY_WITH_TIMEOUT(processor_seconds(process.processId()) > 0.4, 60000);
    QVERIFY(send_signal(process.processId(), SIGINT));
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitCode(), kInterrupted);
    QVERIFY(process.readAllStandardError().contains("turnpoint-cli: interrupting; once more to end at once\n"));
    QVERIFY(QDir(folder.path()).entryList(QDir::Files).isEmpty());
  }

  /// The best until then is written, and what was searched before it; the exit code says how it ended.
  void an_interrupt_keeps_what_was_found_data() {
    QTest::addColumn<QString>("endless");
    QTest::newRow("trinity") << "trinity:from=heft:iterations=1000000000";
    QTest::newRow("annealing") << "simulated-annealing:calls=1000000000";
    QTest::newRow("random search") << "random-search:calls=1000000000";
  }
  void an_interrupt_keeps_what_was_found() {
    QFETCH(QString, endless);
    QTemporaryDir folder;
    const QString graph = QStringLiteral(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json");
    const QString file = folder.filePath("r.json");
    for (const QStringList& arguments :
         {QStringList{"place", graph, "--devices", "2", "--method", endless, "--out", file},
          QStringList{"search", graph, "--method", "heft," + endless + ",pardnn", "--out", file}}) {
      QProcess process;
      process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", arguments);
      QVERIFY(process.waitForStarted());
      // What it begins with and is taught takes a small part of this, on so small a graph.
      QTRY_VERIFY_WITH_TIMEOUT(processor_seconds(process.processId()) > 3, 60000);
      QVERIFY(send_signal(process.processId(), SIGINT));
      QVERIFY(process.waitForFinished(60000));
      const QByteArray said = process.readAllStandardError();
      QVERIFY2(process.exitCode() == kInterrupted, said);
      QVERIFY2(said.contains("stopped early"), said);
      QFile written(file);
      QVERIFY2(written.open(QIODevice::ReadOnly), said);
      const QJsonObject object = QJsonDocument::fromJson(written.readAll()).object();
      if (arguments.front() == "place") {
        QVERIFY(object["stages"].toArray().last()["name"].toString().endsWith(", stopped early"));
      } else {
        const QJsonArray results = object["results"].toArray();
        QCOMPARE(results.size(), 3);
        QVERIFY(!results[0]["points"].toArray().isEmpty() && !results[1]["points"].toArray().isEmpty());
        QVERIFY(results[2]["points"].toArray().isEmpty());
        QVERIFY(said.contains("method pardnn is left out: the search was stopped before it"));
      }
    }
  }

  void one_of_several_results_is_exported_by_name() {
    QTemporaryDir folder;
    const QString file = folder.filePath("r.json");
    const Run search =
        run(kSearch + QStringList{"--method", "data-parallel,manual:dp=4,manual:dp=2:tp=2", "--out", file});
    QVERIFY2(search.code == kDone, search.err);
    const Run unnamed = run({"export", file, "--to", "json"});
    QVERIFY2(unnamed.code == kUsage, unnamed.err);
    QVERIFY2(unnamed.err.contains("holds results of data-parallel, manual:dp=4, manual:dp=2:tp=2; choose one with "
                                  "--method"),
             unnamed.err);
    for (const char* method : {"data-parallel", "manual:dp=4"}) {
      const Run named = run({"export", file, "--method", method, "--to", "json"});
      QVERIFY2(named.code == kDone && !named.object().isEmpty(), named.err);
    }
    const Run twice = run({"export", file, "--method", "manual", "--to", "json"});
    QVERIFY2(twice.code == kUsage && twice.err.contains("holds 2 results of manual"), twice.err);
    const Run other = run({"export", file, "--method", "ft", "--to", "json"});
    QVERIFY2(other.code == kUsage && other.err.contains("holds no result of ft"), other.err);
  }

  // Before anything is measured: the probe would not even be found.
  void a_measurement_asks_for_its_disk_first() {
    QTemporaryDir folder;
    qputenv("TURNPOINT_PROBE", "/nowhere/turnpoint-probe");
    const Run measured = limited({"measure", "--out", folder.filePath("p.json")}, RLIMIT_FSIZE, 1000);
    qunsetenv("TURNPOINT_PROBE");
    QVERIFY2(measured.code == kBadInput, measured.err);
    QVERIFY2(measured.err.contains("p.json: cannot be written: File too large"), measured.err);
  }
};

QTEST_GUILESS_MAIN(FaultsTest)
#include "faults_test.moc"
