// SPDX-License-Identifier: Apache-2.0
// `hardware FILE...` through the program itself: what it prints, what it writes, its exit codes; and a search on what
// it wrote.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QTest>

#include "test_data.h"

class HardwareFilesTest : public QObject {
  Q_OBJECT

  struct Run {
    int code = -1;
    QByteArray out, err;
  };
  static Run run(const QStringList& arguments) {
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli", arguments);
    Run result;
    if (!process.waitForFinished(60000) || process.exitStatus() != QProcess::NormalExit) return result;
    result.code = process.exitCode();
    result.out = process.readAllStandardOutput();
    result.err = process.readAllStandardError();
    return result;
  }
  QTemporaryDir folder_;
  QString write(const char* name, const QByteArray& text) {
    QFile file(folder_.filePath(name));
    if (!file.open(QIODevice::WriteOnly)) return {};
    file.write(text);
    return file.fileName();
  }

 private slots:
  void a_log_becomes_a_profile_that_searches_read() {
    const QString log = write(
        "intra_8.json", R"({"all reduce": [[1, 16, 256], [1e-4, 4e-4, 5e-3]], "all gather": [[1, -1], [1e-4, 1e-4]]})");
    const QString profile = folder_.filePath("profile.json");
    const Run made = run({"hardware", log, "--base", "v100-16gb-1x8", "--out", profile});
    QVERIFY2(made.code == 0, made.err);
    QVERIFY2(made.out.contains("all_reduce of 8 devices (1 x 8): 3 sizes"), made.out);
    QVERIFY2(made.out.contains((log + ": a size of").toUtf8()), made.out);
    QVERIFY2(made.out.contains("all_to_all     1 x 8                   calibrated"), made.out);
    const Run search = run({"search", "builtin:lenet", "--hardware", profile, "--method", "data-parallel"});
    QVERIFY2(search.code == 0, search.err);
    QCOMPARE(QJsonDocument::fromJson(search.out).object()["scenario"].toObject()["devices"].toInt(), 8);
    const Run again = run({"hardware", profile, "--interpolation", "bandwidth", "--out", "-"});
    QVERIFY2(again.code == 0, again.err);
    const auto written = QJsonDocument::fromJson(again.out).object();
    QCOMPARE(written["interpolation"].toString(), QString("bandwidth"));
    QCOMPARE(written["collectives"].toArray().size(), 4);
  }

  void json_report() {
    const QString log = write("intra_2.json", R"({"all reduce": [[1, 2], [1e-4, 5e-5]]})");
    const Run report = run({"hardware", log, "--base", "v100-16gb-1x2", "--json"});
    QVERIFY2(report.code == 0, report.err);
    const auto root = QJsonDocument::fromJson(report.out).object();
    const auto file = root["files"].toArray().at(0).toObject();
    QCOMPARE(file["curves"].toArray().at(0).toObject()["points"].toArray().size(), 2);
    QVERIFY(file["problems"].toArray().at(0).toObject()["what"].toString().contains("not monotonic"));
    QCOMPARE(root["coverage"].toArray().at(0).toObject()["origin"].toString(), QString("measured"));
    QCOMPARE(root["profile"].toObject()["format"].toString(), QString("turnpoint/hardware-profile@1"));
    // Looking at a file needs no device; making a profile does.
    const Run look = run({"hardware", log, "--json"});
    QCOMPARE(look.code, 0);
    QVERIFY(QJsonDocument::fromJson(look.out).object()["profile"].isNull());
    const Run refused = run({"hardware", log, "--out", folder_.filePath("never.json")});
    QCOMPARE(refused.code, 2);
    QVERIFY(refused.err.contains("give --base PRESET"));
    QVERIFY(!QFile::exists(folder_.filePath("never.json")));
  }

  void exit_codes() {
    const QString prose = write("prose.txt", "hello\n");
    for (const auto& [arguments, code] :
         QList<std::pair<QStringList, int>>{{{"hardware", prose}, 3},
                                            {{"hardware", folder_.path()}, 3},
                                            {{"hardware", "absent.log"}, 3},
                                            {{"hardware", prose, "--base", "zebra"}, 2},
                                            {{"hardware", "--base", "v100-16gb-1x8"}, 2},
                                            {{"search", "builtin:lenet", "--hardware", prose}, 3}}) {
      const Run result = run(arguments);
      QVERIFY2(result.code == code, (arguments.join(' ') + ": " + result.err).toUtf8());
      QCOMPARE(result.err.count('\n'), 1);
      QVERIFY(result.out.isEmpty());
    }
    const QString log = write("intra_4.json", R"({"all reduce": [[1], [1e-4]]})");
    QCOMPARE(run({"hardware", log, "--base", "v100-16gb-1x4", "--interpolation", "cubic"}).code, 2);
  }

  void mixed_clusters_warn() {
    const Run search =
        run({"search", "builtin:lenet", "--hardware", "tpu-v2-4x2+tpu-v3-4x2", "--method", "data-parallel"});
    QVERIFY2(search.code == 0, search.err);
    QVERIFY2(search.err.contains("note: hardware: the devices differ (8 of TPU-v2-board, 8 of TPU-v3-board)"),
             search.err);
    QCOMPARE(QJsonDocument::fromJson(search.out).object()["scenario"].toObject()["devices"].toInt(), 16);
    QCOMPARE(run({"search", "builtin:lenet", "--hardware", "tpu-v2-4x2+tpu-v3-4x2", "--devices", "4"}).code, 2);
  }

  void logs_that_name_their_device_are_hardware() {
    REQUIRE_DATA(data);
    const QString log = QString::fromStdString((data / "hardware/nccl-tests/a100x8_nccl_allreduce.log").string());
    const Run search = run({"search", "builtin:lenet", "--hardware", log, "--method", "data-parallel"});
    QVERIFY2(search.code == 0, search.err);
    QCOMPARE(QJsonDocument::fromJson(search.out).object()["scenario"].toObject()["devices"].toInt(), 8);
  }
};

QTEST_APPLESS_MAIN(HardwareFilesTest)
#include "hardware_files_test.moc"
