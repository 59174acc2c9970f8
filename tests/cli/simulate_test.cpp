// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli simulate, run as a program: what it computes, what it writes where, and its exit codes.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "plan_io/schema_check.h"

using namespace turnpoint::test;

namespace {

Run simulate(const QStringList& arguments) { return run(QStringList{"simulate"} + arguments); }

QByteArray contents(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

QString data(const char* name) { return QString(TURNPOINT_SOURCE_DIR "/tests/data/task_graph/") + name; }

}  // namespace

class SimulateTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

  QString written(const char* name, const QByteArray& text) {
    QFile file(folder_.filePath(name));
    if (file.open(QIODevice::WriteOnly)) file.write(text);
    return file.fileName();
  }

 private slots:
  void result_on_standard_output() {
    const Run done = simulate({data("small.json"), data("placement.json")});
    QCOMPARE(done.code, kDone);
    QCOMPARE(done.err, QByteArray());
    const QJsonObject result = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(turnpoint::test::SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas")
                 .check("simulation@1", nlohmann::json::parse(done.out.toStdString())),
             std::string());
    QCOMPARE(result["makespan_s"].toDouble(), 11.0);
    const QJsonArray devices = result["devices"].toArray();
    QCOMPARE(devices.size(), 2);
    QCOMPARE(devices[0].toObject()["busy_s"].toDouble(), 6.0);
    QCOMPARE(devices[1].toObject()["busy_s"].toDouble(), 4.0);
    // Device 0: 10 persistent, the tensor of a (100) until its sending ends at 5, the workspace of b (7) from 3 to 5.
    QCOMPARE(devices[0].toObject()["peak_bytes"].toInt(), 117);
    // Device 1: the copy of a (100) and the tensor of c (50) from 5 on.
    QCOMPARE(devices[1].toObject()["peak_bytes"].toInt(), 150);
    QCOMPARE(devices[0].toObject()["fits"].toBool(), true);
    QCOMPARE(devices[0].toObject()["sent_bytes"].toInt(), 100);
    QCOMPARE(result["peak_communication_bytes"].toInt(), 100);  // of a to device 1; c goes back with 50
    QCOMPARE(result["critical_path"].toObject()["length"].toInt(), 5);
    QCOMPARE(result["critical_path"].toObject()["transfer_s"].toDouble(), 3.0);
  }

  void trace_and_out() {
    const QString out = folder_.filePath("r.json"), trace = folder_.filePath("t.json");
    const Run done = simulate({data("small.json"), data("placement.json"), "--out", out, "--trace", trace});
    QCOMPARE(done.code, kDone);
    QCOMPARE(done.out, QByteArray());
    QCOMPARE(QJsonDocument::fromJson(contents(out)).object()["makespan_s"].toDouble(), 11.0);
    const QJsonArray events = QJsonDocument::fromJson(contents(trace)).object()["traceEvents"].toArray();
    double computing = 0, sending = 0;
    int flows = 0, counters = 0;
    for (const auto& value : events) {
      const QJsonObject event = value.toObject();
      const QString phase = event["ph"].toString();
      if (phase == "X") (event["cat"] == "transfer" ? sending : computing) += event["dur"].toDouble();
      flows += phase == "s" || phase == "f";
      counters += phase == "C";
    }
    QCOMPARE(computing, 10e6);
    QCOMPARE(sending, 3e6);
    QCOMPARE(flows, 4);
    QVERIFY(counters >= 5);
  }

  void mistakes() {
    QCOMPARE(simulate({}).code, kUsage);
    QCOMPARE(simulate({data("small.json")}).code, kUsage);
    const Run absent = simulate({"absent.json", data("placement.json")});
    QCOMPARE(absent.code, kBadInput);
    QVERIFY(absent.err.contains("absent.json: no such file"));
    const Run short_one = simulate({data("small.json"), written("p.json", R"({"devices": 1, "device": [0]})")});
    QCOMPARE(short_one.code, kBadInput);
    QVERIFY(short_one.err.contains("p.json: the placement has 1 tasks, the task graph has 4"));
    const Run stuck = simulate({data("small.json"), written("q.json", R"({"devices": 1, "device": [0, 0, 0, 0],
      "order": [[3, 0, 1, 2]]})")});
    QCOMPARE(stuck.code, kBadInput);
    QVERIFY(stuck.err.contains("the order can never finish: device 0 cannot run task 3 'd' before task 1 'b'"));
    const Run many = simulate({data("small.json"), written("m.json", R"({"devices": 4, "device": [0, 0, 0, 3]})")});
    QCOMPARE(many.code, kBadInput);
    QVERIFY(many.err.contains("the placement uses 4 devices, the task graph describes 3"));
  }

  void separated_groups_are_warned_of() {
    const Run done = simulate({data("small.json"), written("s.json", R"({"devices": 2, "device": [0, 0, 0, 1]})")});
    QCOMPARE(done.code, kDone);
    QVERIFY(done.err.contains("belong together (group 'a')"));
  }
};

QTEST_APPLESS_MAIN(SimulateTest)
#include "simulate_test.moc"
