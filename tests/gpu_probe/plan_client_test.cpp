// SPDX-License-Identifier: Apache-2.0
// Whatever stands where turnpoint-probe should while a plan's step is run - crashing, hanging, printing garbage, slow,
// cut short, absent - ends in one error, in time; so does a disk without room. The fakes are shell scripts.
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <stop_token>
#include <thread>

#include "gpu_probe/step_jobs.h"

using namespace turnpoint;

namespace {

const QByteArray kHello =
    R"({"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"statistic":"q1","devices":[{"name":"core","memory_bytes":1000}]})";
// Whole objects: moc counts the braces of raw strings.
QByteArray spread(QByteArray line) {
  return line.replace("SPREAD", "\"min_s\":1e-3,\"q1_s\":1e-3,\"median_s\":2e-3,\"q3_s\":2e-3,\"samples\":3");
}
const QByteArray kOperator = spread(R"({"type":"operator","op":1,"phase":"forward",SPREAD})");
const QByteArray kExchange = spread(
    R"({"type":"exchange","reshard":-1,"op":1,"backward":false,"step":0,"planned_bytes":8,"received_bytes":8,SPREAD})");
const QByteArray kResult = spread(
    R"({"type":"result","mode":"ranks","ranks":2,"cores":2,"step_time":{SPREAD},"memory":{"parameters":1,"gradients":1,"optimizer":1,"kept":1,"peak":5,"counted_peak":4},"planned_bytes":8,"received_bytes":8,"notes":["as planned"]})");

QByteArray echo(const QByteArray& line) { return "echo '" + line + "'\n"; }

/// Its operator 1 has parameters whose gradients are summed.
StepJob small_job() {
  StepJob job = test::long_job();
  job.steps = 3;
  job.budget_s = 5;
  return job;
}

}  // namespace

class PlanClientTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  int count_ = 0;
  const StepJob job_ = small_job();

  std::string write(const QByteArray& text) {
    const QString path = folder_.filePath("file" + QString::number(++count_));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write(text);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path.toStdString();
  }
  std::string fake(const QByteArray& body) { return write("#!/bin/sh\n" + body); }

 private slots:
  void initTestCase() { QVERIFY(!all_steps(job_.plan.operators[1].parameters).empty()); }

  void a_good_run_is_taken_whole() {
    const std::string got = folder_.filePath("job.json").toStdString();
    const auto m = measure_step({fake("cat > " + QByteArray::fromStdString(got) + "\n" + echo(kHello) +
                                      echo(kOperator) + echo(kExchange) + echo(kResult)),
                                 20,
                                 0.4,
                                 {}},
                                job_, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
    QVERIFY(m->ranks == 2 && m->phases.size() == 1 && m->exchanges.size() == 1 && m->step.median_s == 2e-3);
    QCOMPARE(m->notes, std::vector<std::string>{"as planned"});
    QFile job(QString::fromStdString(got));
    QVERIFY(job.open(QIODevice::ReadOnly));
    QCOMPARE(job.readAll().toStdString(), write_step_job(job_));
  }

  void bad_probes_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QString>("said");
    const QByteArray begun = echo(kHello) + echo(kOperator);
    QTest::newRow("crash") << begun + "kill -SEGV $$\n"
                           << "signal 11";
    QTest::newRow("crash at once") << QByteArray("echo out of luck >&2\nexit 9\n")
                                   << "code 9 before it had a result; it said: out of luck";
    QTest::newRow("hang") << begun + "sleep 3600\n"
                          << "not been heard of";
    QTest::newRow("hang without a word") << QByteArray("sleep 3600\n") << "not been heard of";
    QTest::newRow("garbage") << QByteArray("echo hello world\n") << "no message: 'hello world'";
    QTest::newRow("binary garbage") << QByteArray("head -c 100000 /dev/urandom\necho\n") << "no message";
    QTest::newRow("a line without end") << QByteArray("yes | tr -d '\\n'\n") << "line without end";
    QTest::newRow("partial output") << begun + "printf '%s' '" + kResult.left(40) + "'\n"
                                    << "middle of a line";
    QTest::newRow("no result") << begun << "code 0 before it had a result";
    QTest::newRow("another program") << QByteArray("echo '{\"type\":\"hello\",\"program\":\"x\"}'\n")
                                     << "is not turnpoint-probe";
    QTest::newRow("before hello") << echo(kOperator) << "no message";
    QTest::newRow("an operator that is not there")
        << echo(kHello) + echo(QByteArray(kOperator).replace("\"op\":1", "\"op\":9999")) << "op";
    QTest::newRow("a phase that is none")
        << echo(kHello) + echo(QByteArray(kOperator).replace("forward", "sideways")) << "'sideways' is no phase";
    QTest::newRow("an exchange that is not planned")
        << echo(kHello) + echo(QByteArray(kExchange).replace("\"step\":0", "\"step\":77")) << "none of the plan's";
    QTest::newRow("quartiles that fall") << echo(kHello) +
                                                echo(QByteArray(kOperator).replace("\"q1_s\":1e-3", "\"q1_s\":1"))
                                         << "q1_s";
    QTest::newRow("negative bytes") << echo(kHello) + echo(QByteArray(kResult).replace("\"peak\":5", "\"peak\":-5"))
                                    << "peak";
    QTest::newRow("after its result") << echo(kHello) + echo(kResult) + echo(kOperator) << "went on";
    QTest::newRow("its own error")
        << echo(kHello) + echo(R"({"type":"error","code":"device","what":"no memory","hint":"a smaller batch"})")
        << "no memory (a smaller batch)";
  }
  void bad_probes() {
    QFETCH(QByteArray, body);
    QFETCH(QString, said);
    const auto m = measure_step({fake(body), 1.5, 0.3, {}}, job_, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find(said.toStdString()) != std::string::npos, m.error().message().c_str());
    QCOMPARE(m.error().code, ErrorCode::device);
  }

  void absent() {
    auto m = measure_step({folder_.filePath("nobody").toStdString(), 1, 0.3, {}}, job_, {});
    QVERIFY(!m.has_value());
    QVERIFY2(
        m.error().message().find("cannot be started: " + folder_.filePath("nobody").toStdString()) != std::string::npos,
        m.error().message().c_str());
    m = measure_step({"probe", 1, 0.3, {}, {"no-such-launcher", "-n", "2"}}, job_, {});
    QVERIFY(!m.has_value());
    QVERIFY2(m.error().message().find("cannot be started: no-such-launcher") != std::string::npos,
             m.error().message().c_str());
  }

  void slow_is_waited_for() {
    QByteArray body = echo(kHello);
    for (int i = 0; i < 6; ++i) body += "sleep 0.4\n" + echo(R"({"type":"heartbeat"})");
    const auto m = measure_step({fake(body + echo(kResult)), 1.5, 0.3, {}}, job_, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
  }

  void a_stop_ends_it_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::newRow("sleeping") << echo(kHello) + "sleep 3600\n";
    QTest::newRow("deaf to signals") << "trap '' TERM INT\n" + echo(kHello) + "while :; do sleep 0.1; done\n";
  }
  void a_stop_ends_it() {
    QFETCH(QByteArray, body);
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      stop.request_stop();
    });
    const auto m = measure_step({fake(body), 30, 0.3, {}}, job_, context);
    QVERIFY(!m.has_value());
    QCOMPARE(m.error().code, ErrorCode::cancelled);
  }

  // The words of a launcher go in front, and what it starts gets the job.
  void a_launcher_starts_it() {
    const std::string launcher = fake("[ \"$1\" = '-n 2' ] || exit 7\nshift\nexec \"$@\"\n");
    const auto words = launcher_words("'" + launcher + "' '-n 2'");
    QVERIFY(words.has_value());
    const std::string probe =
        fake("[ \"$1 $2\" = '--job -' ] || exit 8\ngrep -q step-job || exit 9\n" + echo(kHello) + echo(kResult));
    const auto m = measure_step({probe, 20, 0.3, {}, *words}, job_, {});
    QVERIFY2(m.has_value(), m ? "" : m.error().message().c_str());
  }

  // 128 bits, other ones for every run, under both names; one that the user has chosen stays.
  void a_launcher_brings_a_random_word() {
    const std::string seen = folder_.filePath("tokens").toStdString();
    const auto run = [&] {
      const std::string probe = fake("echo \"$TURNPOINT_TOKEN $OMPI_TURNPOINT_TOKEN\" > " + QByteArray::fromStdString(seen) +
                                     "\n" + echo(kHello) + echo(kResult));
      const auto m = measure_step({probe, 20, 0.3, {}, {"env"}}, job_, {});
      QFile file(QString::fromStdString(seen));
      return m && file.open(QIODevice::ReadOnly) ? file.readAll().trimmed().split(' ') : QList<QByteArray>();
    };
    qunsetenv("TURNPOINT_TOKEN");
    const auto first = run(), second = run();
    QVERIFY(first.size() == 2 && first[0] == first[1] && first[0].size() == 32 && second.size() == 2);
    QVERIFY(first[0] != second[0]);
    qputenv("TURNPOINT_TOKEN", "mine");
    const auto own = run();
    qunsetenv("TURNPOINT_TOKEN");
    QCOMPARE(own, QList<QByteArray>{"mine"});
  }

  // What only ever says that it lives is ended near its budget, not long after.
  void the_most_that_a_step_may_take() {
    StepJob job = job_;
    job.backend = ProbeBackend::cpu;
    job.prove = false;
    job.budget_s = 2;
    const double least = most_seconds(job, false);
    QVERIFY(least > 2 && least < 75);
    QCOMPARE(most_seconds(job, true), least + 60);  // hosts wait so long for each other
    job.prove = true;
    const double proven = most_seconds(job, false);
    QVERIFY(proven > least && proven <= least + 60 + 10 * job.budget_s);
    job.budget_s = 1e-9;  // the proof is left out
    QVERIFY(most_seconds(job, false) < least);
    job.budget_s = 600;
    QVERIFY(most_seconds(job, false) >= proven + 3 * 598);
  }

  void words_of_a_launcher() {
    const auto words = [](const char* text) { return *launcher_words(text); };
    using Words = std::vector<std::string>;
    QCOMPARE(words(""), Words{});
    QCOMPARE(words("  mpirun  -n 4\t--hostfile 'my hosts' "), (Words{"mpirun", "-n", "4", "--hostfile", "my hosts"}));
    QCOMPARE(words("a\\ b \"c \\\" d\" 'e \\ f' '' x\"y\"z"), (Words{"a b", "c \" d", "e \\ f", "", "xyz"}));
    QVERIFY(!launcher_words("mpirun 'never closed").has_value());
    QCOMPARE(launcher_words("\"").error().code, ErrorCode::usage);
  }

  void recordings_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("said");
    const QByteArray good = kHello + "\n" + kOperator + "\n" + kExchange + "\n" + kResult + "\n";
    QTest::newRow("good") << good << "";
    QTest::newRow("without an end of line") << good.chopped(1) << "";
    QTest::newRow("empty") << QByteArray() << "holds no messages";
    QTest::newRow("text") << QByteArray("some text\n") << ":1: turnpoint-probe printed what is no message";
    QTest::newRow("cut in a line") << good.left(good.size() - 20) << ":4: ";
    QTest::newRow("cut between lines") << kHello + "\n" + kOperator + "\n"
                                       << "breaks off before the result";
    QTest::newRow("of another plan") << QByteArray(good).replace("\"ranks\":2,\"cores\"", "\"ranks\":4,\"cores\"")
                                     << "is of 4 ranks, and the plan is for 2 devices";
    QTest::newRow("of another model") << QByteArray(good).replace("\"op\":1,\"phase\"", "\"op\":999,\"phase\"")
                                      << ":2: ";
    QTest::newRow("an error") << kHello + "\n" + R"({"type":"error","what":"rank 1 is lost"})" + "\n"
                              << "rank 1 is lost";
  }
  void recordings() {
    QFETCH(QByteArray, text);
    QFETCH(QString, said);
    const auto m = read_step_recording(write(text), job_);
    QCOMPARE(m.has_value(), said.isEmpty());
    if (m) {
      QCOMPARE(m->phases.size(), std::size_t(1));
      QCOMPARE(m->ranks, 2);
    } else {
      QCOMPARE(m.error().code, ErrorCode::bad_input);
      QVERIFY2(m.error().message().find(said.toStdString()) != std::string::npos, m.error().message().c_str());
    }
  }

  // The real probe: a full disk on its output ends it, ranks and all, and so does a reader that goes away.
  void nobody_can_listen_data() {
    QTest::addColumn<QString>("reader");
    QTest::newRow("disk full") << "> /dev/full";
    QTest::newRow("reader gone") << "| head -n 1 > /dev/null";
  }
  void nobody_can_listen() {
    QFETCH(QString, reader);
    QProcess process;
    process.start("sh",
                  {"-c", "{ " TURNPOINT_BINARY_DIR "/turnpoint-probe --job -; echo ended with $? >&2; } " + reader});
    const std::string text = write_step_job(test::long_job());
    process.write(text.c_str(), static_cast<qint64>(text.size()));
    process.closeWriteChannel();
    QVERIFY(process.waitForFinished(20000));
    const QByteArray said = process.readAllStandardError();
    QVERIFY2(said.contains("ended with 5"), said);
  }
};

QTEST_GUILESS_MAIN(PlanClientTest)
#include "plan_client_test.moc"
