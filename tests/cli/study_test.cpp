// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli study, run as a program: asked, shown, interrupted, refused.
#include <QFile>
#include <QJsonArray>
#include <QTemporaryDir>
#include <QtTest>

#include "cli/command_line.h"
#include "processor_clock.h"
#include "send_signal.h"

using namespace turnpoint;
using namespace turnpoint::test;

namespace {

const QString kShipped = TURNPOINT_SOURCE_DIR "/resources/studies/pardnn-batches.json";

}  // namespace

class StudyCommandTest : public QObject {
  Q_OBJECT
  QTemporaryDir folder_;

  /// The shipped study without answers, of LeNet on one and two devices where it is `small`.
  QString study(bool small) {
    QFile shipped(kShipped);
    if (!shipped.open(QIODevice::ReadOnly)) return {};
    QJsonObject object = QJsonDocument::fromJson(shipped.readAll()).object();
    object["cells"] = QJsonArray();
    if (small) {
      object["devices"] = QJsonArray{1, 2};
      object["methods"] = QJsonArray{"heft", "data-parallel:recompute"};
      object["networks"] =
          QJsonArray{QJsonObject{{"model", "builtin:lenet"}, {"title", "LeNet"}, {"reported", QJsonArray{16, 64}}}};
    }
    const QString path = folder_.filePath("study.json");
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write(QJsonDocument(object).toJson());
    return path;
  }
  static QJsonObject read(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
  }

 private slots:
  void what_is_asked_is_written_and_shown() {
    const QString file = study(true);
    const Run asked = run({"study", file, "--out", file});
    QVERIFY2(asked.code == kDone, asked.err);
    const QJsonArray cells = read(file)["cells"].toArray();
    QCOMPARE(cells.size(), 8);  // two methods, two counts, two batches
    for (const auto& cell : cells)
      QVERIFY(cell.toObject()["fits"].toBool() && cell.toObject()["time_s"].toDouble() > 0);
    QVERIFY2(asked.err.contains("at the paper's batches: "), asked.err);
    QVERIFY(!read(file)["made"].toString().isEmpty());
    // Shown it is as it is; asked again with another graph the answers stand beside these.
    const Run shown = run({"study", file, "--show", "--json"});
    QVERIFY(shown.code == kDone && shown.object() == read(file));
    const Run whole = run({"study", file, "--graph", "whole-layers", "--out", file});
    QVERIFY2(whole.code == kDone, whole.err);
    QCOMPARE(read(file)["cells"].toArray().size(), 12);  // one of the methods places nothing
  }

  /// A cell of the study is what `search` answers for its model, devices, batch and method.
  void cells_are_what_a_search_says() {
    const QString file = study(true);
    QCOMPARE(run({"study", file, "--out", file}).code, kDone);
    int compared = 0;
    for (const auto& one : read(file)["cells"].toArray()) {
      const QJsonObject cell = one.toObject();
      const QString devices = QString::number(cell["devices"].toInt());
      const Run searched = run({"search", cell["model"].toString(), "--hardware", "v100-32gb-1x" + devices, "--batch",
                                QString::number(cell["batch"].toInteger()), "--without", "split-loss", "--method",
                                cell["method"].toString()});
      QVERIFY2(searched.code == kDone, searched.err);
      double fastest = 0, memory = 0;
      for (const auto& point : searched.object()["points"].toArray()) {
        const auto figure = [&](const char* simulated, const char* plain) {
          const QJsonObject of = point.toObject();
          return of.contains(simulated) ? of[simulated].toDouble() : of[plain].toDouble();
        };
        const double time = figure("simulated_time_s", "time_s");
        if (!point.toObject()["fits"].toBool() || (fastest > 0 && time >= fastest)) continue;
        fastest = time;
        memory = figure("simulated_memory_bytes", "memory_bytes");
      }
      QVERIFY(fastest > 0);
      QCOMPARE(cell["time_s"].toDouble(), fastest);
      QCOMPARE(cell["memory_bytes"].toDouble(), memory);
      ++compared;
    }
    QCOMPARE(compared, 8);
  }

  // Where some answers stay as they were, the file's day stays as well.
  void the_day_is_that_of_all_answers() {
    const QString file = study(true);
    QCOMPARE(run({"study", file, "--out", file}).code, kDone);
    QJsonObject old = read(file);
    QVERIFY(old["made"].toString() > "2026");
    old["made"] = "2001-02-03";
    const auto put_back = [&] {
      QFile written(file);
      return written.open(QIODevice::WriteOnly) && written.write(QJsonDocument(old).toJson()) > 0;
    };
    QVERIFY(put_back());
    QCOMPARE(run({"study", file, "--graph", "whole-layers", "--out", file}).code, kDone);
    QCOMPARE(read(file)["cells"].toArray().size(), 12);
    QCOMPARE(read(file)["made"].toString(), QString("2001-02-03"));
    QVERIFY(put_back());
    QCOMPARE(run({"study", file, "--out", file}).code, kDone);
    QVERIFY(read(file)["made"].toString() > "2026");
  }

  void an_error_keeps_what_was_found() {
    const QString file = study(true), out = folder_.filePath("failed.json");
    QJsonObject object = read(file);
    QJsonArray networks = object["networks"].toArray();
    networks.append(
        QJsonObject{{"model", folder_.filePath("none.onnx")}, {"title", "None"}, {"reported", QJsonArray{16, 64}}});
    object["networks"] = networks;
    object["made"] = "2001-02-03";
    {
      QFile written(file);
      QVERIFY(written.open(QIODevice::WriteOnly) && written.write(QJsonDocument(object).toJson()) > 0);
    }
    const Run failed = run({"study", file, "--out", out});
    QCOMPARE(failed.code, kBadInput);
    QVERIFY2(failed.err.contains("none.onnx"), failed.err);
    QCOMPARE(read(out)["cells"].toArray().size(), 8);  // all of LeNet's
    QCOMPARE(read(out)["made"].toString(), QString("2001-02-03"));
  }

  void an_interrupt_keeps_what_was_found() {
    const QString file = study(false), out = folder_.filePath("out.json");
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", {"study", file, "--out", out});
    QVERIFY(process.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(processor_seconds(process.processId()) > 4, 120000);
    QVERIFY(send_signal(process.processId(), SIGINT));
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitCode(), kInterrupted);
    QVERIFY(
        process.readAllStandardError().contains("was stopped; answers that the study had not asked for again are "
                                                "unchanged"));
    const auto cells = read(out)["cells"].toArray().size();
    QVERIFY(cells > 0 && cells < 400);
  }

  void what_is_wrong_is_said() {
    const QString file = study(true);
    QCOMPARE(run({"study", file, "--models", "builtin:wrn"}).code, kUsage);
    QCOMPARE(run({"study", file, "--graph", "nonsense=1"}).code, kUsage);
    QCOMPARE(run({"study", file, "--show", "--models", "nonsense"}).code, kUsage);
    const Run shown = run({"study", file, "--show", "--graph", "nonsense"});
    QVERIFY2(shown.code == kUsage && shown.out.isEmpty() && shown.err.contains("nonsense"), shown.err);
    QCOMPARE(run({"study", file, "--show", "--graph", "whole-layers", "--models", "builtin:lenet"}).code, kDone);
    QCOMPARE(run({"study", folder_.filePath("none.json")}).code, kBadInput);
    const Run other = run({"study", TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json"});
    QVERIFY2(other.code == kBadInput && other.err.contains("turnpoint/batch-study@1"), other.err);
  }
};

QTEST_APPLESS_MAIN(StudyCommandTest)
#include "study_test.moc"
