// SPDX-License-Identifier: Apache-2.0
// Whatever stands where turnpoint-probe should - crashing, hanging, printing garbage, slow, cut short, absent - ends in
// one error, in time. The fakes are shell scripts.
#include <QFile>
#include <QTemporaryDir>
#include <QTest>
#include <stop_token>
#include <thread>

#include "core/hardware/probe_client.h"

using namespace turnpoint;

namespace {

const QByteArray kHello =
    R"(echo '{"type":"hello","program":"turnpoint-probe","protocol":1,"backend":"cpu","ranks":2,"statistic":"q1","devices":[{"name":"core","memory_bytes":1000}]}')"
    "\n";
const QByteArray kItem =
    R"(echo '{"type":"item","index":0,"kind":"matmul","dims":[4,4,4],"flop":128,"time_s":1e-6,"samples":3}')"
    "\n";
const QByteArray kResult = R"(echo '{"type":"result","measured":1,"not_measured":0,"skipped":0}')"
                           "\n";

ProbeJob small_job() {
  ProbeJob job;
  ProbeOperator op;
  op.kind = "matmul";
  op.dims = {4, 4, 4};
  ProbeCall call;
  call.kind = CallKind::matmul;
  call.size = {1, 4, 4, 4, 0, 0};
  op.calls = {call};
  job.operators = {op};
  job.budget_s = 5;
  return job;
}

}  // namespace

class ClientTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;

  std::string fake(const QByteArray& body) {
    const QString path = folder_.filePath("probe" + QString::number(++count_));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write("#!/bin/sh\n" + body);
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path.toStdString();
  }
  int count_ = 0;

 private slots:
  void a_good_run_is_taken_whole() {
    std::vector<std::string> lines;
    ProbeLaunch launch{fake("cat > " + folder_.filePath("job.json").toUtf8() + "\n" + kHello + kItem + kResult), 5, 0.4,
                       [&](const std::string& line) { lines.push_back(line); }};
    const auto messages = run_probe(launch, small_job(), {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
    QCOMPARE(messages->items().size(), std::size_t(1));
    QCOMPARE(messages->items()[0].time_s, 1e-6);
    QCOMPARE(messages->hello()->ranks, 2);
    QCOMPARE(lines.size(), std::size_t(3));
    // The job arrived on its standard input, whole.
    QFile job(folder_.filePath("job.json"));
    QVERIFY(job.open(QIODevice::ReadOnly));
    const auto parsed = parse_probe_job(job.readAll().toStdString(), "job");
    QVERIFY2(parsed.has_value(), parsed ? "" : parsed.error().message().c_str());
    QCOMPARE(write_probe_job(*parsed), write_probe_job(small_job()));
  }

  void bad_probes_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::addColumn<QString>("said");
    QTest::addColumn<int>("partial_items");
    QTest::newRow("crash") << kHello + kItem + "kill -SEGV $$\n"
                           << "signal 11" << 1;
    QTest::newRow("crash at once") << QByteArray("echo out of luck >&2\nexit 9\n")
                                   << "code 9 before it had a result; it said: out of luck" << 0;
    QTest::newRow("hang") << kHello + "sleep 3600\n"
                          << "not been heard of" << 0;
    QTest::newRow("hang without a word") << QByteArray("sleep 3600\n") << "not been heard of" << 0;
    QTest::newRow("garbage") << QByteArray("echo hello world\n") << "no message: 'hello world'" << 0;
    QTest::newRow("binary garbage") << QByteArray("head -c 100000 /dev/urandom\necho\n") << "no message" << 0;
    QTest::newRow("a line without end") << QByteArray("yes | tr -d '\\n'\n") << "line without end" << 0;
    QTest::newRow("partial") << kHello + kItem + "printf '{\"type\":\"item\",\"ind'\n"
                             << "middle of a line" << 1;
    QTest::newRow("no result") << kHello + kItem << "code 0 before it had a result" << 1;
    QTest::newRow("another program") << QByteArray("echo '{\"type\":\"hello\",\"program\":\"x\"}'\n")
                                     << "is not turnpoint-probe" << 0;
    QTest::newRow("another version")
        << QByteArray("echo '{\"type\":\"hello\",\"program\":\"turnpoint-probe\",\"protocol\":7}'\n") << "speaks 1"
        << 0;
    QTest::newRow("item before hello") << kItem << "no message" << 0;
    QTest::newRow("impossible time") << kHello + "echo '{\"type\":\"item\",\"index\":0,\"time_s\":-1}'\n"
                                     << "time_s" << 0;
    QTest::newRow("after its result") << kHello + kResult + kItem << "went on" << 0;
    QTest::newRow("its own error")
        << kHello + "echo '{\"type\":\"error\",\"code\":\"device\",\"what\":\"no driver\",\"hint\":\"install one\"}'\n"
        << "no driver (install one)" << 0;
  }
  void bad_probes() {
    QFETCH(QByteArray, body);
    QFETCH(QString, said);
    QFETCH(int, partial_items);
    ProbeMessages partial;
    const auto messages = run_probe({fake(body), 1.5, 0.3, {}}, small_job(), {}, &partial);
    QVERIFY(!messages.has_value());
    QVERIFY2(messages.error().message().find(said.toStdString()) != std::string::npos,
             messages.error().message().c_str());
    QCOMPARE(messages.error().code, ErrorCode::device);
    QCOMPARE(static_cast<int>(partial.items().size()), partial_items);
  }

  void absent() {
    const auto messages = run_probe({folder_.filePath("nobody").toStdString(), 1, 0.3, {}}, small_job(), {});
    QVERIFY(!messages.has_value());
    QVERIFY2(messages.error().message().find("cannot be started") != std::string::npos,
             messages.error().message().c_str());
    qputenv("TURNPOINT_PROBE", folder_.filePath("nobody").toUtf8());
    const auto found = find_probe();
    qunsetenv("TURNPOINT_PROBE");
    QVERIFY(!found.has_value());
    QVERIFY2(found.error().message().find("nobody") != std::string::npos, found.error().message().c_str());
  }

  // Slow is not dead: as long as it says something, it is waited for.
  void slow_is_waited_for() {
    QByteArray body = kHello;
    for (int i = 0; i < 6; ++i) body += "sleep 0.4\necho '{\"type\":\"heartbeat\"}'\n";
    const auto messages = run_probe({fake(body + kResult), 1.5, 0.3, {}}, small_job(), {});
    QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
  }

  // A launcher that stays after the probe's last word is ended, and what was measured stands.
  void a_result_does_not_wait_for_its_launcher() {
    for (const QByteArray& stays : {QByteArray("exec sleep 3600\n"), QByteArray("trap '' TERM\nsleep 3600\n")}) {
      const ProbeLaunch launch{fake(kHello + kItem + kResult + stays), 0.5, 0.3, {}};
      const auto messages = run_probe(launch, small_job(), {});
      QVERIFY2(messages.has_value(), messages ? "" : messages.error().message().c_str());
      QCOMPARE(messages->items().size(), std::size_t(1));
    }
  }

  // What only ever says that it lives is ended: at the most that its job can take, not minutes after.
  void endless_heartbeats_are_ended() {
    class Nothing : public ProbeSink {
      Expected<void> take(std::string_view) override { return {}; }
      bool finished() const override { return false; }
      ProbeProgress progress() const override { return {}; }
    } sink;
    const auto ended = run_probe({fake(kHello + "while :; do echo '{\"type\":\"heartbeat\"}'; sleep 0.1; done\n"), 10, 0.3, {}},
                                 std::string("{}"), 1.5, sink, {});
    QVERIFY(!ended.has_value());
    QVERIFY2(ended.error().message().find("takes longer than its time budget") != std::string::npos,
             ended.error().message().c_str());
    ProbeJob job = small_job();
    job.backend = ProbeBackend::cpu;
    job.budget_s = 2;
    job.limit_s = 20;
    QVERIFY(most_seconds(job) < 100);
    job.backend = ProbeBackend::cuda;
    QVERIFY(most_seconds(job) > 120 + 22);  // libraries of a GPU may take two minutes to load
  }

  void a_stop_ends_it_data() {
    QTest::addColumn<QByteArray>("body");
    QTest::newRow("sleeping") << kHello + "sleep 3600\n";
    QTest::newRow("deaf to signals") << "trap '' TERM INT\n" + kHello + "while :; do sleep 0.1; done\n";
  }
  void a_stop_ends_it() {
    QFETCH(QByteArray, body);
    std::stop_source stop;
    RunContext context;
    context.stop = stop.get_token();
    std::jthread stopper([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      stop.request_stop();
    });
    const auto messages = run_probe({fake(body), 30, 0.3, {}}, small_job(), context);
    QVERIFY(!messages.has_value());
    QCOMPARE(messages.error().code, ErrorCode::cancelled);
  }

  void recordings() {
    const auto write = [&](const char* name, const QByteArray& text) {
      QFile file(folder_.filePath(name));
      if (file.open(QIODevice::WriteOnly)) file.write(text);
      return folder_.filePath(name).toStdString();
    };
    const auto plain = [](QByteArray script) { return script.replace("echo '", "").replace("'\n", "\n"); };
    const auto good = read_probe_recording(write("good", plain(kHello + kItem + kResult)));
    QVERIFY2(good.has_value(), good ? "" : good.error().message().c_str());
    QVERIFY(good->notes.empty());
    const auto cut = read_probe_recording(write("cut", plain(kHello + kItem) + "{\"type\":\"it"));
    QVERIFY(cut.has_value());
    QCOMPARE(cut->messages.items().size(), std::size_t(1));
    QVERIFY2(cut->notes.at(0).find("breaks off") != std::string::npos, cut->notes.at(0).c_str());
    const auto bad = read_probe_recording(write("bad", "some text\n"));
    QVERIFY(!bad.has_value());
    QVERIFY2(bad.error().message().find("bad:1") != std::string::npos, bad.error().message().c_str());
    QVERIFY(!read_probe_recording(write("empty", "")).has_value());
  }
};

QTEST_APPLESS_MAIN(ClientTest)
#include "client_test.moc"
