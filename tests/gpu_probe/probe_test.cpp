// SPDX-License-Identifier: Apache-2.0
// The real turnpoint-probe: whole runs over CPU ranks, refused jobs, signals, a full disk, two at once; and the CUDA
// path over a driver without a device.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>
#include <csignal>

#include "core/hardware/probe_client.h"
#include "gpu_probe/cuda/nvrtc.h"
#include "send_signal.h"

using namespace turnpoint;

namespace {

const QString kProbe = TURNPOINT_BINARY_DIR "/turnpoint-probe";

ProbeOperator item(CallKind kind, std::initializer_list<std::int64_t> sizes,
                   ProbePrecision precision = ProbePrecision::fp32) {
  ProbeOperator op;
  op.kind = call_record(kind).name;
  op.dims = {1};
  op.precision = precision;
  ProbeCall call;
  call.kind = kind;
  std::copy(sizes.begin(), sizes.end(), call.size.begin());
  op.calls = {call};
  return op;
}

ProbeJob job(ProbeBackend backend, int ranks) {
  ProbeJob made;
  made.backend = backend;
  made.ranks = ranks;
  made.item_s = 0.005;
  made.budget_s = 60;
  made.operators = {item(CallKind::matmul, {2, 32, 32, 32, 0, 1}), item(CallKind::softmax, {16, 64}),
                    item(CallKind::adam, {1000})};
  return made;
}

/// Far from its end whenever a test looks: an item that has settled is followed by others.
ProbeJob long_job() {
  ProbeJob made = job(ProbeBackend::cpu, 2);
  made.item_s = 30;
  made.operators.assign(10000, item(CallKind::matmul, {1, 512, 512, 512, 0, 0}));
  return made;
}

/// Runs the program itself, the job on its standard input.
struct Said {
  int code = -1;
  QList<QJsonObject> lines;
};
Said run(const std::string& text, const QStringList& environment = {}) {
  QProcess process;
  QStringList all = QProcess::systemEnvironment();
  process.setEnvironment(all + environment);
  process.start(kProbe, {"--job", "-"});
  process.write(text.c_str(), static_cast<qint64>(text.size()));
  process.closeWriteChannel();
  Said said;
  if (!process.waitForFinished(120000) || process.exitStatus() != QProcess::NormalExit) return said;
  said.code = process.exitCode();
  for (const auto& line : process.readAllStandardOutput().split('\n'))
    if (!line.isEmpty()) said.lines.append(QJsonDocument::fromJson(line).object());
  return said;
}

QList<QJsonObject> of_type(const Said& said, const QString& type) {
  QList<QJsonObject> found;
  for (const auto& line : said.lines)
    if (line["type"] == type) found.append(line);
  return found;
}

}  // namespace

class ProbeTest : public QObject {
  Q_OBJECT

 private slots:
  void cpu_ranks_data() {
    QTest::addColumn<int>("ranks");
    for (const int ranks : {1, 2, 4}) QTest::addRow("%d ranks", ranks) << ranks;
  }
  void cpu_ranks() {
    QFETCH(int, ranks);
    ProbeJob asked = job(ProbeBackend::cpu, ranks);
    for (int size = 2; size <= ranks; size *= 2)
      for (const auto kind : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter,
                              Collective::all_to_all, Collective::broadcast, Collective::send})
        asked.collectives.push_back({kind, size, 4096});
    asked.operators.push_back(item(CallKind::softmax, {4, 4}, ProbePrecision::bf16));
    const Said said = run(write_probe_job(asked));
    QCOMPARE(said.code, 0);
    const auto items = of_type(said, "item");
    QCOMPARE(items.size(), static_cast<qsizetype>(asked.items()));
    const auto order = run_order(asked);
    for (qsizetype i = 0; i < items.size(); ++i) {
      const auto index = items[i]["index"].toInt();
      QCOMPARE(index, static_cast<int>(order[static_cast<std::size_t>(i)]));
      if (index == 3) {  // bf16
        QVERIFY(items[i]["not_measured"].toString().contains("bf16"));
        continue;
      }
      QVERIFY(items[i]["time_s"].toDouble() > 0);
      QVERIFY(items[i]["min_s"].toDouble() <= items[i]["q1_s"].toDouble());
      QVERIFY(items[i]["q1_s"].toDouble() <= items[i]["median_s"].toDouble());
      QVERIFY(items[i]["samples"].toInt() >= 1);
    }
    // One number after the other, hello before items, the result last.
    for (qsizetype i = 0; i < said.lines.size(); ++i) QCOMPARE(said.lines[i]["seq"].toInt(), static_cast<int>(i));
    QCOMPARE(of_type(said, "hello").size(), qsizetype(1));
    QCOMPARE(of_type(said, "hello")[0]["devices"].toArray().size(), qsizetype(ranks));
    QCOMPARE(said.lines.last()["type"].toString(), QString("result"));
    QCOMPARE(said.lines.last()["measured"].toInt(), static_cast<int>(asked.items()) - 1);
  }

  void a_budget_is_kept() {
    ProbeJob asked = job(ProbeBackend::cpu, 2);
    asked.budget_s = 0.5;
    asked.item_s = 0.2;
    asked.operators.resize(2000, asked.operators[0]);  // a fast machine takes some milliseconds each
    const Said said = run(write_probe_job(asked));
    QCOMPARE(said.code, 0);
    QVERIFY(said.lines.last()["skipped"].toInt() > 0);
    QVERIFY(!said.lines.last()["complete"].toBool());
  }

  void refused_jobs_data() {
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("said");
    const QByteArray head = R"({"format":"turnpoint/probe-job@1",)";
    const auto one = [&](const char* call) {
      return head + R"("operators":[{"kind":"x","dims":[1],"calls":[)" + call + "]}]}";
    };
    QTest::newRow("empty") << QByteArray("") << "job";
    QTest::newRow("no JSON") << QByteArray("hello") << "job";
    QTest::newRow("deep") << QByteArray(100000, '[') << "nest";
    QTest::newRow("another format") << QByteArray(R"({"format":"turnpoint/plan@1"})")
                                    << "expected 'turnpoint/probe-job@1'";
    QTest::newRow("nothing to do") << head + R"("ranks":1})"
                                   << "nothing to measure";
    QTest::newRow("unknown kernel") << one(R"({"call":"fft"})") << "'fft' is no kernel";
    QTest::newRow("a size is missing") << one(R"({"call":"softmax","rows":4})") << "columns";
    QTest::newRow("negative") << one(R"({"call":"softmax","rows":-4,"columns":3})") << "rows";
    QTest::newRow("overflow") << one(R"({"call":"softmax","rows":1099511627776,"columns":1099511627776})") << "1e12";
    QTest::newRow("not whole") << one(R"({"call":"softmax","rows":1.5,"columns":2})") << "rows";
    QTest::newRow("output of another size")
        << one(R"({"call":"convolution","n":1,"c":1,"h":4,"w":4,"k":1,"r":3,"s":3,"p":9,"q":9,"stride_h":1,"stride_w":1,"pad_h":1,"pad_w":1,"dilation_h":1,"dilation_w":1,"groups":1})")
        << "has an output that";
    QTest::newRow("strides that wrap")
        << one(R"({"call":"pooling","planes":1,"h":1,"w":1,"p":33554432,"q":1,"r":1,"s":1,"stride_h":549755813888,"stride_w":1,"pad_h":0,"pad_w":0})")
        << "above 16 million";
    QTest::newRow("windows that fill the memory")
        << one(R"({"call":"pooling","planes":1,"h":1000,"w":1000,"p":1000,"q":1000,"r":1000,"s":1000,"stride_h":1,"stride_w":1,"pad_h":500,"pad_w":500})")
        << "1e12";
    QTest::newRow("too many ranks") << head + R"("ranks":1000,"operators":[]})"
                                    << "ranks";
    QTest::newRow("groups do not divide")
        << head + R"("ranks":3,"collectives":[{"kind":"all_reduce","group_size":2,"bytes":8}]})"
        << "does not divide";
  }
  void refused_jobs() {
    QFETCH(QByteArray, text);
    QFETCH(QString, said);
    const Said answer = run(text.toStdString());
    QCOMPARE(answer.code, 3);
    QCOMPARE(answer.lines.size(), qsizetype(1));
    QCOMPARE(answer.lines[0]["type"].toString(), QString("error"));
    const QString all = answer.lines[0]["where"].toString() + " " + answer.lines[0]["what"].toString();
    QVERIFY2(all.contains(said), all.toUtf8());
  }

  void wrong_usage() {
    QProcess process;
    process.start(kProbe, {"--nonsense"});
    QVERIFY(process.waitForFinished(10000));
    QCOMPARE(process.exitCode(), 2);
    QVERIFY(process.readAllStandardOutput().isEmpty());
  }

  void a_signal_ends_it_data() {
    QTest::addColumn<int>("signal");
    QTest::newRow("SIGTERM") << SIGTERM;
    QTest::newRow("SIGINT") << SIGINT;
  }
  void a_signal_ends_it() {
    QFETCH(int, signal);
    const ProbeJob asked = long_job();
    QProcess process;
    process.start(kProbe, {"--job", "-"});
    const std::string text = write_probe_job(asked);
    process.write(text.c_str(), static_cast<qint64>(text.size()));
    process.closeWriteChannel();
    QVERIFY(process.waitForReadyRead(20000));
    QTest::qWait(300);
    QVERIFY(turnpoint::test::send_signal(process.processId(), signal));
    QVERIFY(process.waitForFinished(120000));
    QCOMPARE(process.exitCode(), 130);
    QVERIFY(process.readAllStandardOutput().contains("\"code\":\"cancelled\""));
  }

  // A reader that goes away, and a disk without room: it ends by itself, ranks and all.
  void nobody_listens() {
    ProbeJob asked = job(ProbeBackend::cpu, 2);
    QProcess process;
    process.setStandardOutputFile("/dev/full");
    process.start(kProbe, {"--job", "-"});
    const std::string text = write_probe_job(asked);
    process.write(text.c_str(), static_cast<qint64>(text.size()));
    process.closeWriteChannel();
    QVERIFY(process.waitForFinished(20000));
    QCOMPARE(process.exitCode(), 5);
  }

  void ranks_die_with_the_probe() {
    const ProbeJob asked = long_job();
    QProcess process;
    process.start(kProbe, {"--job", "-"});
    const std::string text = write_probe_job(asked);
    process.write(text.c_str(), static_cast<qint64>(text.size()));
    process.closeWriteChannel();
    QVERIFY(process.waitForReadyRead(20000));
    QTest::qWait(500);
    const QString children = QString("/proc/%1/task/%1/children").arg(process.processId());
    QFile file(children);
    if (!file.open(QIODevice::ReadOnly)) QSKIP("this kernel does not list children");
    const auto ranks = file.readAll().split(' ');
    QVERIFY(ranks.size() >= 2);
    process.kill();
    process.waitForFinished(5000);
    // They end with their parent; a moment for the kernel to say so.
    for (const auto& rank : ranks)
      if (!rank.isEmpty())
        QTRY_VERIFY(::kill(rank.toInt(), 0) != 0 || QFile::exists("/proc/" + rank) == false || is_gone(rank));
  }

  void two_at_once() {
    const std::string text = write_probe_job(job(ProbeBackend::cpu, 2));
    QProcess first, second;
    for (auto* process : {&first, &second}) {
      process->start(kProbe, {"--job", "-"});
      process->write(text.c_str(), static_cast<qint64>(text.size()));
      process->closeWriteChannel();
    }
    QVERIFY(first.waitForFinished(60000) && second.waitForFinished(60000));
    QCOMPARE(first.exitCode(), 0);
    QCOMPARE(second.exitCode(), 0);
    QVERIFY(second.readAllStandardOutput().contains("\"type\":\"result\""));
  }

  void no_driver_is_one_error() {
    // This machine may have one: then there is nothing to see here.
    const Said automatic = run(write_probe_job(job(ProbeBackend::automatic, 2)));
    QCOMPARE(automatic.code, 0);
    if (of_type(automatic, "hello")[0]["backend"] != "cpu") QSKIP("there is a GPU here");
    const auto missing = of_type(automatic, "hello")[0]["missing"].toArray();
    QVERIFY(QJsonDocument(missing).toJson().contains("no NVIDIA driver"));
    const Said said = run(write_probe_job(job(ProbeBackend::cuda, 1)));
    QCOMPARE(said.code, 5);
    QCOMPARE(of_type(said, "error").size(), qsizetype(1));
    QVERIFY(of_type(said, "error")[0]["what"].toString().contains("no NVIDIA driver"));
    QVERIFY(!of_type(said, "error")[0]["hint"].toString().isEmpty());
  }

  void a_driver_that_fails_data() {
    QTest::addColumn<QString>("fault");
    QTest::addColumn<int>("code");
    QTest::addColumn<QString>("said");
    QTest::newRow("no device") << "devices:0" << 5 << "shows no device";
    QTest::newRow("does not start") << "cuInit:1:803" << 5 << "803";
    QTest::newRow("no context") << "cuDevicePrimaryCtxRetain:1:2" << 5 << "opening the device";
    QTest::newRow("no memory") << "cuMemAlloc_v2:1:2" << 5 << "cache flush";
  }
  void a_driver_that_fails() {
    QFETCH(QString, fault);
    QFETCH(int, code);
    QFETCH(QString, said);
    const Said answer = run(write_probe_job(job(ProbeBackend::cuda, 1)), fake_driver(fault));
    QCOMPARE(answer.code, code);
    QVERIFY(!of_type(answer, "error").isEmpty());
    QVERIFY2(of_type(answer, "error")[0]["what"].toString().contains(said),
             of_type(answer, "error")[0]["what"].toString().toUtf8());
  }

  void cuda_calls_reach_the_driver() {
    if (!probe::cuda::Nvrtc().loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    ProbeJob asked = job(ProbeBackend::cuda, 1);
    asked.operators.push_back(item(CallKind::batch_norm_backward, {4, 8, 49}, ProbePrecision::bf16));
    asked.operators.push_back(item(CallKind::host_to_device, {4096}));
    const Said said = run(write_probe_job(asked), fake_driver({}));
    QCOMPARE(said.code, 0);
    const auto items = of_type(said, "item");
    QCOMPARE(items.size(), qsizetype(5));
    QVERIFY(!items[0]["not_measured"].toString().isEmpty());  // cublasLt sees through the fake, or is not here
    for (qsizetype i = 1; i < items.size(); ++i) QVERIFY2(items[i]["time_s"].toDouble() > 0, QByteArray::number(i));
    QVERIFY(of_type(said, "hello")[0]["cold"].toBool());
  }

  // A kernel that faults takes its process along; the items behind it are measured by the next one.
  void a_fault_costs_one_item() {
    if (!probe::cuda::Nvrtc().loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    ProbeJob asked = job(ProbeBackend::cuda, 1);
    asked.operators = {item(CallKind::softmax, {16, 64}), item(CallKind::adam, {1000})};
    const Said said = run(write_probe_job(asked), fake_driver("cuEventSynchronize:1:700"));
    QCOMPARE(said.code, 0);
    const auto items = of_type(said, "item");
    QVERIFY(items.size() >= 2);
    for (const auto& one : items) QVERIFY(one["not_measured"].toString().contains("700"));
    QCOMPARE(said.lines.last()["measured"].toInt(), 0);
  }

  // On a driver whose kernels do nothing, every comparison must fail: they can.
  void checks_can_fail() {
    if (!probe::cuda::Nvrtc().loaded().usable()) QSKIP("no run-time compiler of CUDA here");
    ProbeJob asked = job(ProbeBackend::cuda, 1);
    asked.check = true;
    const Said said = run(write_probe_job(asked), fake_driver({}));
    QCOMPARE(said.code, 0);
    const auto checks = of_type(said, "check");
    QVERIFY(checks.size() > 80);
    for (const auto& check : checks)
      QVERIFY2(check["call"] == "copy" ? check["good"].toBool() : !check["good"].toBool(),
               QJsonDocument(check).toJson());
  }

 private:
  static bool is_gone(const QByteArray& pid) {
    QFile status("/proc/" + pid + "/stat");
    return !status.open(QIODevice::ReadOnly) || status.readAll().contains(") Z");
  }
  static QStringList fake_driver(const QString& fault) {
    return {"LD_LIBRARY_PATH=" TURNPOINT_FAKE_CUDA_DIR ":" + qEnvironmentVariable("LD_LIBRARY_PATH"),
            "TURNPOINT_FAKE_CUDA=" + fault};
  }
};

QTEST_GUILESS_MAIN(ProbeTest)
#include "probe_test.moc"
