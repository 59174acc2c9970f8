// SPDX-License-Identifier: Apache-2.0
// turnpoint-cli sweep, run as a program: what it writes, that it agrees with search, interrupted, refused.
#include <QSet>
#include <QtTest>

#include "cli/command_line.h"
#include "cli/result_folder.h"
#include "processor_clock.h"
#include "send_signal.h"

using namespace turnpoint;
using namespace turnpoint::test;

class SweepCommandTest : public QObject, ResultFolder {
  Q_OBJECT

 private slots:
  void what_is_found_is_what_search_finds() {
    const QStringList common{"builtin:lenet", "--hardware", "v100-16gb-1x4", "--price-per-hour", "2"};
    const Run swept =
        run(QStringList{"sweep"} + common +
            QStringList{"--over", "batch=8..32", "--method", "ft,data-parallel", "--out", path("s.json")});
    QVERIFY2(swept.code == kDone, swept.err);
    QVERIFY2(swept.err.contains("batch 16, ft: "), swept.err);
    const auto document = read("s.json");
    QCOMPARE(schemas_.check("sweep@1", document), std::string());
    QCOMPARE(document["cells"].size(), std::size_t(6));
    QVERIFY(document["complete"] == true && document["over"]["own"] == 256);
    for (const auto& cell : document["cells"]) {
      const QString batch = QString::number(cell["value"].get<int>());
      const Run alone = run(QStringList{"search"} + common +
                            QStringList{"--batch", batch, "--method", cell["method"].get<std::string>().c_str(),
                                        "--out", path("r.json")});
      QVERIFY2(alone.code == kDone, alone.err);
      const auto result = read("r.json");
      QCOMPARE(cell["plans"], result["points"].size());
      const auto& point = result["points"][cell["fastest"]["point"].get<std::size_t>()];
      QCOMPARE(cell["fastest"]["time_s"], point["time_s"]);
      QCOMPARE(cell["fastest"]["memory_bytes"], point["memory_bytes"]);
      const double time = point["time_s"], step = 4 * 2 * time / 3600;
      QVERIFY(std::abs(cell["fastest"]["price_per_step"].get<double>() / step - 1) < 1e-12);
      QVERIFY(std::abs(cell["fastest"]["samples_per_second"].get<double>() * time / batch.toDouble() - 1) < 1e-12);
    }
  }

  void as_comma_separated_values() {
    const Run done = run({"sweep", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--over", "devices=1,2,4,6",
                          "--method", "data-parallel", "--out", path("s.csv")});
    QVERIFY2(done.code == kDone, done.err);
    QFile file(path("s.csv"));
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QList<QByteArray> lines = file.readAll().trimmed().split('\n');
    QCOMPARE(lines.size(), 5);
    QVERIFY(lines[0].startsWith("quantity,value,method,state,devices,batch,"));
    const QList<QByteArray> columns = lines[0].split(',');
    QCOMPARE(QSet<QByteArray>(columns.begin(), columns.end()).size(), columns.size());
    QVERIFY(lines[3].startsWith("devices,4,data-parallel,fits,4,256,"));
    QVERIFY2(lines[4].startsWith("devices,6,data-parallel,cannot be,,,,"), lines[4]);
    // Whether it is one is no matter of capitals; and it is no document.
    const QStringList small{"sweep",   "builtin:lenet", "--hardware",    "v100-16gb-1x4", "--over",
                            "batch=8", "--method",      "data-parallel", "--out"};
    QCOMPARE(run(small + QStringList{path("large.CSV")}).code, kDone);
    QFile large(path("large.CSV"));
    QVERIFY(large.open(QIODevice::ReadOnly) && large.readAll().startsWith("quantity,value,"));
    const Run both = run(small + QStringList{path("both.csv"), "--json"});
    QVERIFY2(both.code == kUsage && both.err.contains("--json and --out"), both.err);
    QVERIFY(!QFile::exists(path("both.csv")));
  }

  void what_is_varied_is_not_said_to_be_taken() {
    const QStringList batch{"sweep",      "builtin:gpt2?layers=1&hidden=64&batch=16&sequence=32",
                            "--hardware", "v100-16gb-1x2",
                            "--method",   "fsdp:micro-batches=4,fsdp",
                            "--out",      path("s.json"),
                            "--over"};
    const Run batches = run(batch + QStringList{"batch=8"});
    QVERIFY2(batches.code == kDone && !batches.err.contains("batch 16 (the model"), batches.err);
    QCOMPARE(read("s.json")["methods"].size(), std::size_t(2));
    const Run parts = run(batch + QStringList{"micro-batches=2"});
    QVERIFY2(parts.code == kDone && parts.err.contains("batch 16 (the model"), parts.err);
    QCOMPARE(read("s.json")["methods"].size(), std::size_t(1));
  }

  void where_nothing_fits() {
    const Run done = run({"sweep", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--over", "batch=64,128", "--method",
                          "data-parallel", "--memory-limit", "1MiB", "--out", path("s.json")});
    QCOMPARE(done.code, kInfeasible);
    const auto document = read("s.json");
    QCOMPARE(schemas_.check("sweep@1", document), std::string());
    for (const auto& cell : document["cells"]) {
      QVERIFY(cell["state"] == "nothing fits" && cell["least_bytes"] > (1 << 20));
      QVERIFY(cell["reason"].get<std::string>().find("fits 1.00 MiB") != std::string::npos);
    }
  }

  void an_interrupt_keeps_what_was_found() {
    QProcess process;
    process.start(TURNPOINT_BINARY_DIR "/turnpoint-cli",
                  {"sweep", "builtin:transformer", "--hardware", "v100-16gb-2x8", "--over", "batch=8..8192", "--method",
                   "ft,data-parallel", "--out", path("cut.json")});
    QVERIFY(process.waitForStarted());
    QTRY_VERIFY_WITH_TIMEOUT(processor_seconds(process.processId()) > 4, 120000);
    QVERIFY(send_signal(process.processId(), SIGINT));
    QVERIFY(process.waitForFinished(60000));
    QCOMPARE(process.exitCode(), kInterrupted);
    const QByteArray err = process.readAllStandardError();
    QVERIFY2(err.contains("the sweep was stopped with "), err);
    const auto document = read("cut.json");
    QCOMPARE(schemas_.check("sweep@1", document), std::string());
    QVERIFY(document["complete"] == false && document["cells"].size() > 0 && document["cells"].size() < 22);
  }

  void what_is_wrong_is_said_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<QString>("words");
    const QStringList lenet{"builtin:lenet", "--hardware", "v100-16gb-1x4", "--over"};
    QTest::newRow("quantity") << lenet + QStringList{"bathc=8"} << "did you mean 'batch'?";
    QTest::newRow("value") << lenet + QStringList{"batch=eight"} << "--over: batch: 'eight' is no whole number";
    QTest::newRow("no sequence") << lenet + QStringList{"sequence=8"} << "builtin:lenet: has no sequence to choose";
    QTest::newRow("method") << lenet + QStringList{"batch=8", "--method", "none"} << "no method 'none'";
    QTest::newRow("none can be") << lenet + QStringList{"devices=5,6", "--method", "ft"} << "no value can be: ";
    QTest::newRow("no hardware") << QStringList{"builtin:lenet", "--over", "batch=8"} << "--hardware is required";
    QTest::newRow("nothing varied") << QStringList{"builtin:lenet", "--hardware", "v100-16gb-1x4"} << "--over";
  }
  void what_is_wrong_is_said() {
    QFETCH(QStringList, arguments);
    QFETCH(QString, words);
    const Run done = run(QStringList{"sweep"} + arguments);
    QCOMPARE(done.code, kUsage);
    QVERIFY2(done.out.isEmpty() && done.err.contains(words.toUtf8()), done.err);
  }
};

QTEST_APPLESS_MAIN(SweepCommandTest)
#include "sweep_test.moc"
