// SPDX-License-Identifier: Apache-2.0
// `measure`: from this machine's CPU ranks to a profile that a search uses; recordings; probes that fail.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "core/base/json.h"
#include "core/hardware/cluster.h"
#include "core/hardware/probe_job.h"
#include "core/hardware/probe_messages.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {
constexpr int kDevice = 5;
}

class MeasureTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString path(const char* name) { return folder_.filePath(name); }

 private slots:
  void initTestCase() {
    qputenv("XDG_DATA_HOME", folder_.path().toUtf8());
    qputenv("XDG_CACHE_HOME", path("cache").toUtf8());
  }

  void a_measurement_becomes_a_profile_that_searches_use() {
    const Run measured =
        run({"measure", "--backend", "cpu", "--ranks", "2", "--budget", "12", "--item", "0.01", "--model",
             "builtin:lenet", "--batch", "16", "--record", path("run.jsonl"), "--out", path("cpu.json")});
    QVERIFY2(measured.code == kDone, measured.err);
    const auto profile = read_hardware_profile(path("cpu.json").toStdString());
    QVERIFY2(profile.has_value(), profile ? "" : profile.error().message().c_str());
    QCOMPARE((*profile)->devices(), 2);
    QVERIFY((*profile)->collectives.size() >= 10);
    QVERIFY((*profile)->operators.size() >= 20);
    QVERIFY(!(*profile)->fits.empty());
    QVERIFY((*profile)->device.peak_fp32 > 1e8);
    for (const auto& sample : (*profile)->collectives) QVERIFY(sample.q1_s <= sample.q3_s && sample.time_s > 0);
    const json document = *read_json_file(path("cpu.json").toStdString());
    SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    QCOMPARE(QString::fromStdString(schemas.check("hardware-profile@1", document)), QString());

    // Every line that the probe printed follows its schema.
    QFile lines(path("run.jsonl"));
    QVERIFY(lines.open(QIODevice::ReadOnly));
    int checked = 0;
    for (const auto& line : lines.readAll().split('\n')) {
      if (line.isEmpty()) continue;
      QCOMPARE(QString::fromStdString(schemas.check("probe-message@1", json::parse(line.toStdString()))), QString());
      ++checked;
    }
    QVERIFY(checked > 30);

    const Run searched = run({"search", "builtin:lenet", "--batch", "16", "--hardware", path("cpu.json")});
    QVERIFY2(searched.code == kDone, searched.err);
    QVERIFY(!searched.object()["points"].toArray().isEmpty());
    // The same profile is `local` now, and the model's own operators were found in it: data parallelism on two ranks
    // costs what its parts were measured to take.
    const Run local = run({"search", "builtin:lenet", "--batch", "16", "--hardware", "local"});
    QVERIFY2(local.code == kDone, local.err);
    QCOMPARE(local.object()["points"], searched.object()["points"]);

    // The recording gives the same figures, without a probe.
    qputenv("TURNPOINT_PROBE", path("nobody").toUtf8());
    const Run again = run({"measure", "--from", path("run.jsonl"), "--out", path("again.json")});
    qunsetenv("TURNPOINT_PROBE");
    QVERIFY2(again.code == kDone, again.err);
    QFile first(path("cpu.json")), second(path("again.json"));
    QVERIFY(first.open(QIODevice::ReadOnly) && second.open(QIODevice::ReadOnly));
    QCOMPARE(first.readAll(), second.readAll());
  }

  void what_was_measured_before_is_taken_over() {
    const auto measure = [&](const QStringList& more) {
      return run(QStringList{"measure", "--backend", "cpu", "--ranks", "2", "--budget", "1", "--item", "0.002", "--out",
                             path("reused.json")} +
                 more);
    };
    qputenv("XDG_CACHE_HOME", path("other cache").toUtf8());
    const Run first = measure({});
    QVERIFY2(first.code == kDone, first.err);
    QVERIFY2(!first.err.contains("were measured before"), first.err);
    const Run second = measure({"--record", path("second.jsonl")});
    QVERIFY2(second.code == kDone, second.err);
    QVERIFY2(second.err.contains("times were measured before, since 20"), second.err);
    const auto profile = read_json_file(path("reused.json").toStdString());
    QVERIFY2(QByteArray::fromStdString((*profile)["notes"].dump()).contains("taken over from earlier runs"), "notes");
    // The recording says of each time when it was measured.
    const auto recording = read_probe_recording(path("second.jsonl").toStdString());
    QVERIFY2(recording.has_value(), recording ? "" : recording.error().message().c_str());
    std::size_t reused = 0;
    for (const auto& item : recording->messages.items()) reused += item.reused.empty() ? 0 : 1;
    QVERIFY(reused > 5);
    for (const auto& ask : {QStringList{"--fresh"}, QStringList{"--max-age", "0"}}) {
      const Run again = measure(ask);
      QVERIFY2(again.code == kDone, again.err);
      QVERIFY2(!again.err.contains("were measured before"), again.err);
    }
    // A broken cache costs its times and a message, and is put aside.
    const QDir cache(path("other cache") + "/turnpoint/measured");
    const QStringList files = cache.entryList({"*.json"});
    QCOMPARE(files.size(), qsizetype(1));
    QFile broken(cache.filePath(files[0]));
    QVERIFY(broken.open(QIODevice::WriteOnly) && broken.write("{\"format\":") > 0);
    broken.close();
    const Run mended = measure({});
    QVERIFY2(mended.code == kDone, mended.err);
    QCOMPARE(mended.err.count("times kept before are ignored"), qsizetype(1));
    QCOMPARE(cache.entryList({"*.broken"}).size(), qsizetype(1));
    const Run after = measure({});
    QVERIFY2(after.err.contains("times were measured before, since 20"), after.err);
    qputenv("XDG_CACHE_HOME", path("cache").toUtf8());
  }

  void what_cannot_be_written_leaves_local_alone() {
    const QString local = folder_.filePath("turnpoint/local.json");
    QFile(local).remove();
    const Run full =
        run({"measure", "--backend", "cpu", "--ranks", "2", "--budget", "1", "--item", "0.002", "--out", "/dev/full"});
    QCOMPARE(full.code, kBadInput);
    QVERIFY(!QFile::exists(local));
    // What can be known before is said before the probe starts, which here is not there.
    qputenv("TURNPOINT_PROBE", path("nobody").toUtf8());
    for (const char* option : {"--out", "--record"}) {
      const Run early = run({"measure", "--backend", "cpu", option, path("no/such/folder.json")});
      QCOMPARE(early.code, kBadInput);
      QVERIFY2(early.err.contains("there is no such folder"), early.err);
    }
    qunsetenv("TURNPOINT_PROBE");
  }

  void a_job_for_another_machine() {
    const Run written = run({"measure", "--backend", "cuda", "--model", "builtin:gpt2", "--batch", "8", "--sequence",
                             "128", "--devices", "4", "--job-out", path("job.json")});
    QVERIFY2(written.code == kDone, written.err);
    const auto text = read_file(path("job.json").toStdString());
    QVERIFY(text.has_value());
    const auto job = parse_probe_job(*text, "job.json");
    QVERIFY2(job.has_value(), job ? "" : job.error().message().c_str());
    QVERIFY(job->operators.size() > 500);
    SchemaCheck schemas(TURNPOINT_SOURCE_DIR "/resources/schemas");
    QCOMPARE(QString::fromStdString(schemas.check("probe-job@1", json::parse(*text))), QString());
  }

  void failures_data() {
    QTest::addColumn<QByteArray>("script");
    QTest::addColumn<QByteArray>("said");
    QTest::newRow("crash") << QByteArray("kill -SEGV $$") << QByteArray("signal 11");
    QTest::newRow("garbage") << QByteArray("echo what") << QByteArray("no message");
    QTest::newRow("cut short") << QByteArray("printf '{\"ty'") << QByteArray("middle of a line");
    QTest::newRow("absent") << QByteArray() << QByteArray("turnpoint-probe is not there");
  }
  void failures() {
    QFETCH(QByteArray, script);
    QFETCH(QByteArray, said);
    QFile fake(path("fake"));
    fake.remove();
    if (!script.isEmpty()) {
      QVERIFY(fake.open(QIODevice::WriteOnly));
      fake.write("#!/bin/sh\n" + script + "\n");
      fake.close();
      fake.setPermissions(QFile::ReadOwner | QFile::ExeOwner);
    }
    qputenv("TURNPOINT_PROBE", path("fake").toUtf8());
    const Run result = run({"measure", "--backend", "cpu", "--out", path("none.json")});
    qunsetenv("TURNPOINT_PROBE");
    QCOMPARE(result.code, kDevice);
    QVERIFY2(result.err.contains(said), result.err);
    QVERIFY(!QFile::exists(path("none.json")));
  }

  void wrong_usage() {
    QCOMPARE(run({"measure", "--backend", "opencl"}).code, kUsage);
    QCOMPARE(run({"measure", "--backend", "cpu", "--precisions", "fp8", "--job-out", "-"}).code, kUsage);
    QCOMPARE(run({"measure", "--job-out", "-"}).code, kUsage);
    const Run half = run({"measure", "--backend", "cpu", "--precisions", "bf16", "--out", path("half.json")});
    QCOMPARE(half.code, kUsage);
    QVERIFY2(half.err.contains("CPU ranks compute in fp32 only"), half.err);
    QVERIFY(!QFile::exists(path("half.json")));
    QCOMPARE(run({"measure", "--model", "builtin:gtp2", "--backend", "cpu", "--job-out", "-"}).code, kUsage);
  }

 private:
  using json = nlohmann::json;
};

QTEST_GUILESS_MAIN(MeasureTest)
#include "measure_test.moc"
