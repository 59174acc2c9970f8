// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli place, run as a program: what it writes, that simulate agrees with it, and its exit codes.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

#include "cli/command_line.h"
using namespace turnpoint::test;

namespace {

const QString kGraph = TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json";

}  // namespace

class PlaceTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

 private slots:
  void placement_is_what_simulate_says() {
    for (const char* method :
         {"pardnn", "pardnn-published", "heft", "pipedream", "layered-expert", "round-robin", "single-device"}) {
      const QString out = folder_.filePath("placement.json");
      const Run done = run({"place", kGraph, "--devices", "2", "--method", method, "--out", out});
      QVERIFY2(done.code == kDone, done.err);
      QFile file(out);
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QJsonObject placed = QJsonDocument::fromJson(file.readAll()).object();
      QCOMPARE(placed["format"].toString(), QString("turnpoint/placement@1"));
      QCOMPARE(placed["method"].toString(), QString(method));
      QCOMPARE(placed["devices"].toInt(), 2);
      QCOMPARE(placed["device"].toArray().size(), 4);
      QCOMPARE(placed["order"].toArray().size(), 2);
      QVERIFY(placed["max_load_s"].toDouble() > 0 && placed["search_s"].toDouble() >= 0);
      QCOMPARE(placed["device"].toArray()[0], placed["device"].toArray()[3]);  // co-located
      const Run simulated = run({"simulate", kGraph, out});
      QVERIFY2(simulated.code == kDone, simulated.err);
      const QJsonObject measured = QJsonDocument::fromJson(simulated.out).object();
      QCOMPARE(measured["makespan_s"].toDouble(), placed["makespan_s"].toDouble());
      QVERIFY(placed.contains("peak_communication_bytes"));
      QCOMPARE(measured["peak_communication_bytes"], placed["peak_communication_bytes"]);
      for (int d = 0; d < 2; ++d)
        QCOMPARE(measured["devices"].toArray()[d].toObject()["peak_bytes"].toDouble(),
                 placed["peak_bytes"].toArray()[d].toDouble());
    }
  }

  void pardnn_is_the_default_and_repeats_itself() {
    const auto device = [](const Run& r) { return QJsonDocument::fromJson(r.out).object()["device"].toArray(); };
    const Run one = run({"place", kGraph, "--devices", "3"});
    const Run two = run({"place", kGraph, "--devices", "3", "--threads", "8", "--method", "pardnn"});
    QCOMPARE(one.code, kDone);
    QVERIFY2(one.err.startsWith("pardnn: makespan ") && one.err.count('\n') == 1, one.err);
    // The load may be above the makespan, which without a word reads as a contradiction.
    QVERIFY2(one.err.contains(" for a single pass; passes that follow one another without a gap take ") &&
                 one.err.contains("what the busiest device computes and sends, added up"),
             one.err);
    QCOMPARE(QJsonDocument::fromJson(one.out).object()["method"].toString(), QString("pardnn"));
    QCOMPARE(device(one), device(two));
  }

  void max_load() {
    const Run done = run({"place", kGraph, "--devices", "2", "--objective", "max-load", "--seed", "3"});
    QVERIFY2(done.code == kDone, done.err);
    const QJsonObject placed = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(placed["objective"].toString(), QString("max-load"));
    QVERIFY(placed["max_load_s"].toDouble() <= 10.0);  // all on one device
  }

  /// Two tasks in a row whose tensors are far larger than what stays: by persistent bytes everything fits.
  void max_load_reports_true_peaks() {
    const QString graph = folder_.filePath("tensors.json"), out = folder_.filePath("loads.json");
    QFile file(graph);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"({"format": "turnpoint/task-graph@1", "tasks": [
      {"name": "a", "time_s": 1, "output_bytes": 1000, "persistent_bytes": 10},
      {"name": "b", "time_s": 1, "output_bytes": 1000, "persistent_bytes": 20}], "edges": [{"from": 0, "to": 1}]})");
    file.close();
    const QStringList place = {"place", graph, "--devices", "2", "--objective", "max-load", "--out", out};
    const Run tight = run(place + QStringList{"--memory-limit", "100"});
    QCOMPARE(tight.code, kInfeasible);
    QVERIFY2(tight.err.contains("keeps persistent bytes alone to the limit"), tight.err);
    QFile written(out);
    QVERIFY(written.open(QIODevice::ReadOnly));
    const QJsonObject placed = QJsonDocument::fromJson(written.readAll()).object();
    QCOMPARE(placed["fits"].toBool(true), false);
    QCOMPARE(placed["limited_by"].toString(), QString("persistent_bytes"));
    const QJsonArray devices = run({"simulate", graph, out}).object()["devices"].toArray();
    QCOMPARE(devices.size(), 2);
    for (int d = 0; d < 2; ++d) {
      QCOMPARE(placed["peak_bytes"].toArray()[d], devices[d].toObject()["peak_bytes"]);
      QCOMPARE(placed["persistent_bytes"].toArray()[d], devices[d].toObject()["persistent_bytes"]);
    }
    QCOMPARE(run(place + QStringList{"--memory-limit", "4000"}).code, kDone);
  }

  /// The largest task needs 110 bytes for itself and its tensor.
  void what_does_not_fit_is_written_nevertheless() {
    const Run done = run({"place", kGraph, "--devices", "2", "--memory-limit", "60"});
    QCOMPARE(done.code, kInfeasible);
    QVERIFY2(done.err.contains("device ") && done.err.contains(" B at "), done.err);
    const QJsonObject placed = QJsonDocument::fromJson(done.out).object();
    QCOMPARE(placed["fits"].toBool(true), false);
    QVERIFY(placed["shortage"].toObject()["bytes"].toDouble() >= 50);
    QCOMPARE(placed["device"].toArray().size(), 4);
  }

  void wrong_usage_and_input() {
    QCOMPARE(run({"place", kGraph}).code, kUsage);
    const Run model = run({"place", "builtin:lenet", "--devices", "2"});
    QCOMPARE(model.code, kUsage);
    QVERIFY2(model.err.contains("search builtin:lenet --hardware HW --method pardnn"), model.err);
    QCOMPARE(run({"place", kGraph, "--devices", "0"}).code, kUsage);
    QCOMPARE(run({"place", kGraph, "--devices", "2", "--memory-limit", "16 apples"}).code, kUsage);
    QCOMPARE(run({"place", kGraph, "--devices", "2", "--objective", "fun"}).code, kUsage);
    const Run method = run({"place", kGraph, "--devices", "2", "--method", "magic"});
    QCOMPARE(method.code, kUsage);
    QVERIFY(method.err.contains("magic") && method.err.contains("pardnn"));
    const Run many = run({"place", kGraph, "--devices", "4"});
    QCOMPARE(many.code, kUsage);
    QVERIFY2(many.err.contains("4 devices asked for, 3 are known"), many.err);
    QCOMPARE(run({"place", "absent.json", "--devices", "2"}).code, kBadInput);
  }
};

QTEST_APPLESS_MAIN(PlaceTest)
#include "place_test.moc"
