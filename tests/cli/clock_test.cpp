// SPDX-License-Identifier: Apache-2.0
// The simulated clock on the command line: search --simulate, methods of one point, export --to trace.
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "cli/command_line.h"

using namespace turnpoint::test;

namespace {

const QStringList kScenario = {"builtin:lenet?batch=64", "--hardware", "v100-16gb-1x4"};

}  // namespace

class ClockTest : public QObject {
  Q_OBJECT
 private slots:
  void every_point() {
    const Run plain = run(QStringList{"search"} + kScenario),
              simulated = run(QStringList{"search"} + kScenario + QStringList{"--simulate"});
    QCOMPARE(plain.code, kDone);
    QCOMPARE(simulated.code, kDone);
    const QJsonArray before = plain.object()["points"].toArray(), after = simulated.object()["points"].toArray();
    QVERIFY(before.size() > 16);
    QCOMPARE(before.size(), after.size());
    QCOMPARE(simulated.object()["clock"].toString(), QString("additive"));
    for (qsizetype k = 0; k < before.size(); ++k) {
      QVERIFY(!before[k].toObject().contains("simulated_time_s"));
      const QJsonObject point = after[k].toObject();
      QCOMPARE(point["memory_bytes"], before[k].toObject()["memory_bytes"]);
      const double time = point["simulated_time_s"].toDouble();
      QVERIFY(time > 0 && time <= point["time_s"].toDouble() * (1 + 1e-12));
      QVERIFY(point["simulated_memory_bytes"].toDouble() > 0);
    }
  }

  void single_answers_and_objectives() {
    const Run single = run(QStringList{"search"} + kScenario + QStringList{"--method", "data-parallel"});
    QVERIFY(single.object()["points"].toArray()[0].toObject().contains("simulated_time_s"));
    const Run fastest = run(QStringList{"search"} + kScenario + QStringList{"--objective", "mini-time", "--simulate"});
    QCOMPARE(fastest.code, kDone);
    QVERIFY(fastest.object()["points"].toArray()[0].toObject().contains("simulated_memory_bytes"));
  }

  void traces() {
    QTemporaryDir folder;
    const QString result = folder.filePath("result.json");
    QCOMPARE(run(QStringList{"search"} + kScenario + QStringList{"--simulate", "--out", result}).code, kDone);
    // A file that was simulated opens like any other.
    const Run trace = run({"export", result, "--point", "min-time", "--to", "trace"});
    QCOMPARE(trace.code, kDone);
    const QJsonArray events = trace.object()["traceEvents"].toArray();
    double last = 0;
    QStringList lanes;
    for (const auto& value : events) {
      const QJsonObject event = value.toObject();
      if (event["ph"] == "X") last = std::max(last, event["ts"].toDouble() + event["dur"].toDouble());
      if (event["name"] == "thread_name") lanes << event["args"].toObject()["name"].toString();
    }
    QCOMPARE(lanes, QStringList({"compute", "communication"}));
    QFile file(result);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonArray points = QJsonDocument::fromJson(file.readAll()).object()["points"].toArray();
    const double time = points.last().toObject()["simulated_time_s"].toDouble();
    QVERIFY(std::abs(last * 1e-6 - time) < 1e-9 * time);
  }
};

QTEST_APPLESS_MAIN(ClockTest)
#include "clock_test.moc"
