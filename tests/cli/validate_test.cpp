// SPDX-License-Identifier: Apache-2.0
// `validate` end to end: searches for CPU ranks, runs plans with the real probe, and refuses what cannot be run.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/result_folder.h"

using namespace turnpoint;
using nlohmann::json;
using test::run;

class ValidateTest : public QObject, test::ResultFolder {
  Q_OBJECT

  QString searched(const char* name, QStringList more, const char* batch = "8") const {
    more = QStringList{"search", "builtin:lenet", "--batch", batch, "--out", path(name)} + more;
    const auto found = run(more);
    if (found.code != 0) qFatal("%s", found.err.constData());
    return path(name);
  }

 private slots:
  void initTestCase() { QVERIFY(folder_.isValid()); }

  void one_plan() {
    const QString result = searched("two.json", {"--hardware", "v100-16gb-1x2"});
    const auto done = run({"validate", result, "--point", "min-time", "--backend", "cpu", "--steps", "4", "--out",
                           path("report.json"), "--csv", path("report.csv"), "--markdown", path("report.md")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QCOMPARE(report["ranks"].get<int>(), 2);
    QCOMPARE(report["step"]["source"].get<std::string>(), std::string("measured"));
    QCOMPARE(report["bytes_sent"]["predicted"], report["bytes_sent"]["measured"]);
    QVERIFY(report["numerics"]["loss_error"].get<double>() <= report["numerics"]["tolerance"].get<double>());
    QVERIFY(!report["operators"].empty());
    QVERIFY(done.err.contains("search on hardware 'local'"));
    QVERIFY(QFile(path("report.csv")).size() > 100);
    QVERIFY(QFile(path("report.md")).size() > 100);
  }

  void several_plans_and_calibration() {
    // With few samples so small a network is all launches, which two cores do as quickly.
    const QString result =
        searched("two.json", {"--hardware", "v100-16gb-1x2", "--method", "ft:micro-batches=1"}, "256");
    const auto done =
        run({"validate", result, "--point", "min-memory", "--backend", "cpu", "--plans", "4", "--steps", "3", "--runs",
             "3", "--calibrate", "--profile-out", path("known.json"), "--out", path("reports.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json reports = read("reports.json");
    QCOMPARE(schemas_.check("validations@1", reports), std::string());
    QCOMPARE(reports["reports"].size(), std::size_t(8));
    // How near the predictions come is validation_bench's to say: on a busy machine steps scatter by more than that.
    // But no load makes two cores as fast as the V100s that the first four reports are predicted for.
    QVERIFY(reports["before"].contains("errors") && reports["calibrated"].contains("errors"));
    for (std::size_t plan = 0; plan < 4; ++plan) {
      const json &before = reports["reports"][plan], &after = reports["reports"][plan + 4];
      QVERIFY(!before["calibrated"].get<bool>() && after["calibrated"].get<bool>());
      QCOMPARE(after["step"]["measured"].get<double>(), before["step"]["measured"].get<double>());
      QVERIFY(after["step"]["predicted"].get<double>() > before["step"]["predicted"].get<double>());
    }
    QCOMPARE(schemas_.check("hardware-profile@1", read("known.json")), std::string());
    searched("again.json", {"--hardware", path("known.json")});
  }

  void a_placement() {
    const QString result = searched("placed.json", {"--hardware", "v100-16gb-1x2", "--method", "pardnn"});
    const auto done = run({"validate", result, "--steps", "4", "--out", path("placed-report.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("placed-report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QCOMPARE(report["ranks"].get<int>(), 2);
    QCOMPARE(report["bytes_sent"]["predicted"], report["bytes_sent"]["measured"]);
    QVERIFY(report["numerics"]["gradient_error"].get<double>() <= report["numerics"]["tolerance"].get<double>());
    QVERIFY(report["operators"].size() > 10);
    QVERIFY(!report["collectives"].empty());
  }

  /// Two unlike cores, one really made slower, and what is refused of that.
  void a_ratio_plan() {
    const QString result = searched("ratio.json", {"--hardware", "local:1+local:1@0.5", "--method", "accpar"});
    const auto done = run({"validate", "--steps", "4", "--slow", "1:2", result, "--out", path("ratio-report.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("ratio-report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QCOMPARE(report["kind"].get<std::string>(), std::string("ratio"));
    QCOMPARE(report["ranks"].get<int>(), 2);
    QCOMPARE(report["devices"].size(), std::size_t(2));
    QVERIFY(report["bytes_sent"]["measured"].get<double>() > 0);
    QCOMPARE(report["bytes_sent"]["predicted"], report["bytes_sent"]["measured"]);
    QVERIFY(report["numerics"]["gradient_error"].get<double>() <= report["numerics"]["tolerance"].get<double>());
    QVERIFY(report["operators"].size() > 10);
    QVERIFY(!report["collectives"].empty());
    QVERIFY(done.err.contains("rank 1 was made slower") && !done.err.contains("which is not what ran"));
    for (const char* slow : {"1", "1:", "1:0.5", "x:2", "-1:2", "1:2:3", "1:5000"}) {
      const auto refused = run({"validate", result, "--slow", slow});
      QVERIFY2(refused.code == 2 && refused.err.contains("--slow"), refused.err.constData());
    }
    QCOMPARE(run({"validate", result, "--slow", "2:2"}).code, 2);
    const auto calibrated = run({"validate", result, "--steps", "3", "--calibrate"});
    QVERIFY2(calibrated.code == 2 && calibrated.err.contains("calibrate no profile"), calibrated.err.constData());
  }

  /// Recurrent layers are placed step by step.
  void a_placement_of_time_steps() {
    const QString steps = path("steps.json");
    auto done = run({"search", "builtin:lstm-lm?layers=2&hidden=32&sequence=4", "--batch", "4", "--hardware",
                     "v100-16gb-1x2", "--method", "round-robin", "--out", steps});
    QVERIFY2(done.code == 0, done.err.constData());
    done = run({"validate", steps, "--steps", "3", "--out", path("steps-report.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("steps-report.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    // Output and cell of a step are one tensor to the simulator: where one device wants both, more arrives.
    const auto predicted = report["bytes_sent"]["predicted"].get<double>();
    const auto measured = report["bytes_sent"]["measured"].get<double>();
    QVERIFY(predicted > 0 && measured >= predicted && measured < 1.01 * predicted);
    QVERIFY(report["numerics"]["gradient_error"].get<double>() <= report["numerics"]["tolerance"].get<double>());
    const auto crossing = std::count_if(
        report["collectives"].begin(), report["collectives"].end(),
        [](const json& one) { return one["name"].get<std::string>().find("/step2") != std::string::npos; });
    QVERIFY(crossing >= 2);
  }

  /// What the tasks are is not known: one sentence says so.
  void placements_that_cannot_be_run() {
    std::ofstream(path("tasks.json").toStdString())
        << R"({"format": "turnpoint/task-graph@1", "tasks": [{"name": "a", "time_s": 1}, {"name": "b", "time_s": 2}],)"
        << R"( "edges": [{"from": 0, "to": 1, "bytes": 8}]})";
    auto done = run({"search", path("tasks.json"), "--hardware", "v100-16gb-1x2", "--method", "heft", "--out",
                     path("tasks-result.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    done = run({"validate", path("tasks-result.json")});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("comes from no model"), done.err.constData());
  }

  void too_much_is_refused_at_once() {
    const QString result = path("large.json");
    auto done = run({"search", "builtin:vgg16", "--batch", "64", "--hardware", "v100-16gb-1x2", "--method",
                     "data-parallel", "--out", result});
    QVERIFY2(done.code == 0, done.err.constData());
    done = run({"validate", result, "--budget", "0.5"});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("is predicted to take") && done.err.contains("--budget"), done.err.constData());
  }

  void a_profile_is_not_overwritten_by_what_it_predicted() {
    QVERIFY(QFile::copy(path("known.json"), path("mine.json")));  // of several_plans_and_calibration()
    const QString result = searched("mine-result.json", {"--hardware", path("mine.json")});
    const auto done = run({"validate", result, "--calibrate", "--profile-out", path("mine.json")});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("is not overwritten"), done.err.constData());
  }

  void a_slice() {
    const QString result = searched("wide.json", {"--hardware", "v100-16gb-2x8"});
    auto done = run({"validate", result, "--point", "min-time", "--backend", "cpu"});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("--devices 8"), done.err.constData());
    done = run({"validate", result, "--point", "min-time", "--backend", "cpu", "--slice", "3", "--steps", "3", "--out",
                path("slice.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    const json report = read("slice.json");
    QCOMPARE(schemas_.check("validation@1", report), std::string());
    QCOMPARE(report["mode"].get<std::string>(), std::string("slice"));
    for (const auto& item : report["collectives"]) QVERIFY(item["measured"].is_null());
    QVERIFY(report["network"]["measured"].is_null());
    QVERIFY(report["bytes_sent"]["measured"].is_null());
    QVERIFY(report["execution"]["measured"].get<double>() > 0);
  }

  void refusals() {
    const QString result = searched("half.json", {"--hardware", "v100-16gb-1x2", "--precision", "bf16"});
    const auto refused = [&](QStringList arguments, const char* what) {
      const auto done = run(QStringList{"validate"} + arguments);
      if (done.code == test::kUsage && done.err.contains(what)) return true;
      qWarning("%d: %s", done.code, done.err.constData());
      return false;
    };
    QVERIFY(refused({result, "--point", "min-time", "--backend", "cpu"}, "in precision fp32"));
    QVERIFY(refused({result, "--point", "9999"}, "--point"));
    QVERIFY(refused({result, "--backend", "tpu"}, "--backend"));
    QVERIFY(refused({result, "--profile-out", path("p.json")}, "--calibrate"));
    QVERIFY(refused({}, "result"));
    const QString placed = searched("placed.json", {"--hardware", "v100-16gb-1x2", "--method", "heft:whole-layers"});
    QVERIFY(refused({placed, "--backend", "cpu", "--slice"}, "one device's part alone"));
    QCOMPARE(run({"validate", path("absent.json")}).code, test::kBadInput);
  }

  /// A recording belongs to one point of one result; one from before recordings said so is read with a warning.
  void recordings_are_of_one_job() {
    const QString result = searched("two.json", {"--hardware", "v100-16gb-1x2"});
    const QString other = path("sixteen.json");
    QCOMPARE(run({"search", "builtin:lenet", "--batch", "16", "--hardware", "v100-16gb-1x2", "--out", other}).code, 0);
    const QString recorded = path("run.jsonl");
    const QStringList common = {"--backend", "cpu", "--steps", "3", "--no-proof", "--out", path("recorded.json")};
    auto done = run(QStringList{"validate", result, "--point", "min-time", "--record", recorded} + common);
    QVERIFY2(done.code == 0, done.err.constData());
    const auto from = [&](const QString& file, const char* point, const QString& lines) {
      return run({"validate", file, "--point", point, "--from", lines, "--steps", "7", "--out", path("from.json")});
    };
    done = from(result, "min-time", recorded);
    QVERIFY2(done.code == 0 && !done.err.contains("warning"), done.err.constData());
    for (const auto& [file, point] : {std::pair{result, "min-memory"}, std::pair{other, "min-time"}}) {
      done = from(file, point, recorded);
      QVERIFY2(done.code == test::kBadInput, done.err.constData());
      QVERIFY2(done.err.contains("run.jsonl: is a recording of another job"), done.err.constData());
    }
    QFile lines(recorded);
    QVERIFY(lines.open(QIODevice::ReadOnly));
    QByteArray text = lines.readAll();
    const auto at = text.indexOf("\"job\":\"");
    QVERIFY(at > 0 && at < text.indexOf('\n'));
    text.remove(at, 25);  // "job":"16 digits",
    QFile older(path("older.jsonl"));
    QVERIFY(older.open(QIODevice::WriteOnly) && older.write(text) == text.size());
    older.close();
    done = from(result, "min-time", path("older.jsonl"));
    QVERIFY2(done.code == 0 && done.err.contains("warning: the recording does not say"), done.err.constData());
  }

  /// One stage, and yet a schedule.
  void what_of_a_schedule_cannot_be_run() {
    auto done = run({"search", "builtin:gpt2?layers=1", "--batch", "4", "--sequence", "16", "--hardware",
                     "v100-16gb-1x2", "--method", "manual:dp=2:recompute", "--out", path("again.json")});
    QVERIFY2(done.code == 0, done.err.constData());
    done = run({"validate", path("again.json")});
    QCOMPARE(done.code, test::kUsage);
    QVERIFY2(done.err.contains("runs whole layers again, which cannot be run yet"), done.err.constData());
    QVERIFY2(!done.err.contains("pipeline"), done.err.constData());
  }

  void without_a_probe() {
    const QString result = searched("two.json", {"--hardware", "v100-16gb-1x2"});
    qputenv("TURNPOINT_PROBE", "/nonexistent/turnpoint-probe");
    const auto done = run({"validate", result, "--point", "min-time"});
    qunsetenv("TURNPOINT_PROBE");
    QCOMPARE(done.code, 5);
  }
};

QTEST_APPLESS_MAIN(ValidateTest)
#include "validate_test.moc"
