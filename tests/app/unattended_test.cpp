// SPDX-License-Identifier: Apache-2.0
// `turnpoint --screenshot --export` as a script meets it: the program itself, without a display.
#include <QImage>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

namespace {

struct Run {
  int code = -1;
  QByteArray err;
};

Run run(const QStringList& arguments) {
  QProcess process;
  auto environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"}) environment.remove(name);
  process.setProcessEnvironment(environment);
  process.start(TURNPOINT_BINARY_DIR "/turnpoint", arguments);
  if (!process.waitForFinished(120000) || process.exitStatus() != QProcess::NormalExit) return {};
  return {process.exitCode(), process.readAllStandardError()};
}

}  // namespace

class UnattendedTest : public QObject {
  Q_OBJECT

 private:
  QTemporaryDir folder_;

 private slots:
  void writes_the_window_and_the_picked_plan() {
    const QString picture = folder_.filePath("window.png"), plan = folder_.filePath("plan.json");
    const Run done = run({"builtin:lenet?batch=64", "--hardware", "v100-16gb-1x4", "--screenshot", picture, "--export",
                          plan, "--size", "1200x800", "--theme", "dark"});
    QVERIFY2(done.code == 0, done.err.constData());
    const QImage image(picture);
    QCOMPARE(image.size(), QSize(1200, 800));
    QVERIFY(image.pixelColor(2, 790).lightness() < 100);  // dark, as asked
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject written = QJsonDocument::fromJson(file.readAll()).object();
    QCOMPARE(written["format"].toString(), QString("turnpoint/plan@1"));
    QVERIFY(written["operators"].toArray().size() > 5);
  }

  void a_batch_in_the_model_s_name_is_used() {
    const QString small = folder_.filePath("small.json"), large = folder_.filePath("large.json");
    QCOMPARE(run({"builtin:lenet?batch=8", "--hardware", "v100-16gb-1x2", "--export", small}).code, 0);
    QCOMPARE(run({"builtin:lenet?batch=8192", "--hardware", "v100-16gb-1x2", "--export", large}).code, 0);
    const auto memory = [](const QString& path) {
      QFile file(path);
      if (!file.open(QIODevice::ReadOnly)) return -1.0;
      double sum = 0;
      for (const auto& op : QJsonDocument::fromJson(file.readAll()).object()["operators"].toArray())
        sum += op.toObject()["memory_bytes"].toDouble();
      return sum;
    };
    QVERIFY(memory(small) > 0);
    QVERIFY(memory(large) > 10 * memory(small));
  }

  void a_session_of_markers_alone_comes_to_rest() {
    const QString session = folder_.filePath("markers.turnpoint"), picture = folder_.filePath("markers.png");
    QFile file(session);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(R"({"format": "turnpoint/session@1", "methods": ["pardnn", "data-parallel"],
                   "scenario": {"model": "builtin:lenet", "hardware": "v100-16gb-1x4"}})");
    file.close();
    const Run done = run({session, "--screenshot", picture, "--size", "1200x800"});
    QVERIFY2(done.code == 0, done.err.constData());
    QCOMPARE(QImage(picture).size(), QSize(1200, 800));
  }

  void a_task_graph_is_placed_and_written() {
    const QString picture = folder_.filePath("tasks.png"), plan = folder_.filePath("placement.json");
    const Run done = run({TURNPOINT_SOURCE_DIR "/tests/data/task_graph/small.json", "--devices", "2", "--screenshot",
                          picture, "--export", plan, "--size", "1200x800"});
    QVERIFY2(done.code == 0, done.err.constData());
    QCOMPARE(QImage(picture).size(), QSize(1200, 800));
    QFile file(plan);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QJsonObject written = QJsonDocument::fromJson(file.readAll()).object();
    QCOMPARE(written["kind"].toString(), QString("placement"));
    QCOMPARE(written["devices"].toInt(), 2);
    QCOMPARE(written["device"].toArray().size(), 4);
  }

  void says_what_it_cannot_open() {
    const QString picture = folder_.filePath("none.png"), model = folder_.filePath("broken.onnx");
    QFile file(model);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write("\x08\x07\x12\xff\xff\xff\xff");
    file.close();
    const Run done = run({model, "--screenshot", picture});
    QCOMPARE(done.code, 3);
    QVERIFY2(done.err.contains("broken.onnx"), done.err.constData());
  }

  void a_picture_that_cannot_be_written_is_an_error() {
    const Run done =
        run({"builtin:lenet", "--hardware", "v100-16gb-1x2", "--screenshot", folder_.filePath("no/such/folder/x.png")});
    QCOMPARE(done.code, 3);
    QVERIFY2(done.err.contains("cannot be written"), done.err.constData());
  }
};

QTEST_GUILESS_MAIN(UnattendedTest)
#include "unattended_test.moc"
