// SPDX-License-Identifier: Apache-2.0
// Reports survive being written and read, follow their schema, say what is wrong with a broken file, and become tables
// in which a modelled number is never shown as measured.
#include <QtTest>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/json.h"
#include "core/validation/validation_report.h"
#include "plan_io/schema_check.h"
#include "validation/reports.h"

using namespace turnpoint;
using nlohmann::json;

class ReportTest : public QObject {
  Q_OBJECT
  test::SchemaCheck schemas_{TURNPOINT_SOURCE_DIR "/resources/schemas"};

 private slots:
  void written_and_read_again() {
    const ValidationReport report = test::sample_report();
    const json document = write_validation(report);
    QCOMPARE(schemas_.check("validation@1", document), std::string());
    const auto again = read_validation(json::parse(document.dump()), "r.json");
    QVERIFY2(again.has_value(), again ? "" : again.error().message().c_str());
    QCOMPARE(write_validation(*again).dump(), document.dump());
    QCOMPARE(again->plan, report.plan);
    QCOMPARE(again->operators.size(), std::size_t(2));
    QVERIFY(!again->operators[1].measured);
    QVERIFY(again->operators[1].source == ValueSource::modelled);
    QVERIFY(again->calibrated);
    QVERIFY(again->numerics && again->numerics->holds());
    QCOMPARE(*again->step.measured, 0.05);
    QCOMPARE(again->notes, report.notes);
  }

  void several_in_one_document() {
    std::vector<ValidationReport> reports(4, test::sample_report());
    for (auto& report : reports) report.calibrated = false;
    for (std::size_t i = 0; i < reports.size(); ++i) {
      reports[i].step.predicted = 0.01 * double(i + 1);
      reports[i].step.measured = 0.02 * double(i + 1);
    }
    const json document = write_validations(reports);
    QCOMPARE(schemas_.check("validations@1", document), std::string());
    QCOMPARE(document["before"]["rank_correlation"].get<double>(), 1.0);
    QVERIFY(!document.contains("calibrated"));
    auto both = reports;
    both.push_back(test::sample_report());
    const json mixed = write_validations(both);
    QCOMPARE(schemas_.check("validations@1", mixed), std::string());
    QCOMPARE(mixed["before"], document["before"]);
    QVERIFY(mixed["calibrated"]["rank_correlation"].is_null());
    QCOMPARE(mixed["calibrated"]["errors"][0]["plans"].get<int>(), 1);
    const auto again = read_validations(document, "r.json");
    QVERIFY(again.has_value());
    QCOMPARE(again->size(), reports.size());
    QCOMPARE(*(*again)[3].step.measured, 0.08);
    const auto one = read_validations(write_validation(reports[0]), "r.json");
    QVERIFY(one.has_value());
    QCOMPARE(one->size(), std::size_t(1));
  }

  /// The format's own description, as another program may write it.
  void what_others_write() {
    const auto report = read_validation(json::parse(R"({"format": "turnpoint/validation@1",
      "hardware": {"name": "local"}, "plan": "p.json", "unknown": [1],
      "step": {"name": "step", "predicted": 1, "measured": 1.1, "q1": 1, "q3": 1.2, "source": "measured"},
      "operators": [], "collectives": [], "memory": [{"name": "peak", "predicted": 1, "measured": null, "source": "modelled"}],
      "bytes_sent": {"predicted": 10, "measured": 10}})"),
                                        "r.json");
    QVERIFY2(report.has_value(), report ? "" : report.error().message().c_str());
    QCOMPARE(report->hardware, std::string("local"));
    QCOMPARE(*report->bytes_sent.measured, 10.0);
    QVERIFY(report->bytes_sent.source == ValueSource::measured);
    QVERIFY(!report->numerics);
  }

  void broken_files_data() {
    QTest::addColumn<QString>("change");
    QTest::addColumn<QString>("place");
    const auto row = [](const char* name, const char* change, const char* place) {
      QTest::newRow(name) << change << place;
    };
    row("format", R"([{"op": "replace", "path": "/format", "value": "turnpoint/plan@1"}])", "format");
    row("no step", R"([{"op": "remove", "path": "/step"}])", "step");
    row("no operators", R"([{"op": "remove", "path": "/operators"}])", "operators");
    row("nameless", R"([{"op": "remove", "path": "/operators/1/name"}])", "operators[1].name");
    row("text", R"([{"op": "replace", "path": "/step/predicted", "value": "1"}])", "step.predicted");
    row("negative", R"([{"op": "replace", "path": "/memory/0/predicted", "value": -1}])", "memory[0].predicted");
    row("huge", R"([{"op": "replace", "path": "/step/measured", "value": 1e300}])", "step.measured");
    row("modelled with a measured value", R"([{"op": "replace", "path": "/step/source", "value": "modelled"}])",
        "step.source");
    row("measured without one", R"([{"op": "replace", "path": "/operators/1/source", "value": "measured"}])",
        "operators[1].source");
    row("source", R"([{"op": "replace", "path": "/step/source", "value": "guessed"}])", "step.source");
    row("ranks", R"([{"op": "replace", "path": "/ranks", "value": 0}])", "ranks");
    row("tolerance", R"([{"op": "remove", "path": "/numerics/tolerance"}])", "numerics.tolerance");
    row("notes", R"([{"op": "replace", "path": "/notes", "value": [1]}])", "notes");
    row("losses", R"([{"op": "add", "path": "/losses", "value": {"first": 1}}])", "losses");
    row("one loss", R"([{"op": "add", "path": "/losses", "value": 1}])", "losses");
    for (const char* ranks : {"[-1]", "[1048576]", "[4294967296]", "[18446744073709551615]", "[0.5]", "1"})
      row(qPrintable(QStringLiteral("ranks of an exchange: ") + ranks),
          qPrintable(QStringLiteral(R"([{"op": "add", "path": "/exchanges", "value": [{"kind": "all_reduce",
            "ranks": %1, "count": {"predicted": 1, "measured": 1}, "bytes": {"predicted": 1, "measured": 1}}]}])")
                         .arg(ranks)),
          "exchanges[0].ranks");
    row("list", R"([{"op": "replace", "path": "/collectives", "value": {}}])", "collectives");
  }
  void broken_files() {
    QFETCH(QString, change);
    QFETCH(QString, place);
    const json broken = write_validation(test::sample_report()).patch(json::parse(change.toStdString()));
    const auto report = read_validation(broken, "r.json");
    QVERIFY(!report.has_value());
    QCOMPARE(report.error().where, "r.json: " + place.toStdString());
  }

  void an_error_that_is_no_number_does_not_hold() {
    ValidationReport report = test::sample_report();
    report.numerics->loss_error = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(!report.numerics->holds());
    const json document = json::parse(write_validation(report).dump());
    QCOMPARE(schemas_.check("validation@1", document), std::string());
    const auto again = read_validation(document, "r.json");
    QVERIFY(again.has_value());
    QVERIFY(!again->numerics->holds());
  }

  void rounding_is_said_beside_the_proof() {
    ValidationReport report = test::ranks_report();
    const json document = json::parse(write_validation(report).dump());
    QCOMPARE(schemas_.check("validation@1", document), std::string());
    const auto again = read_validation(document, "r.json");
    QVERIFY(again.has_value() && again->numerics->rounding && again->numerics->rounding->holds());
    QCOMPARE(write_validation(*again).dump(), document.dump());
    QVERIFY(write_validation_markdown(*again).find("In bf16 the same step is off by what rounding explains: loss by "
                                                   "2.0e-03 of 2.0e-02, gradients by 3.0e-02 of 1.4e-01.") !=
            std::string::npos);
    report.numerics->rounding->gradient_error = 0.2;
    QVERIFY(!report.numerics->rounding->holds() && report.numerics->holds());
    QVERIFY(write_validation_markdown(report).find("MORE THAN ROUNDING EXPLAINS") != std::string::npos);
    QVERIFY(write_validation_markdown(report).find("most at fc2") != std::string::npos);
  }

  void errors_are_relative_to_what_was_measured() {
    ComparedValue value{"x", 3, 2.0, 2, 2, ValueSource::measured};
    QCOMPARE(*value.error(), 0.5);
    value.measured = 0;
    QVERIFY(!value.error());
    value.measured.reset();
    QVERIFY(!value.error());
  }

  void csv_has_every_value() {
    ValidationReport report = test::sample_report();
    const QString csv = QString::fromStdString(write_validation_csv(report));
    QStringList rows = csv.split("\r\n");
    QCOMPARE(rows.takeLast(), QString());
    QCOMPARE(rows.size(), 1 + 4 + int(report.memory.size() + report.operators.size() + report.collectives.size()));
    QCOMPARE(rows.front(), QString("part,name,predicted,measured,q1,q3,error,source"));
    QVERIFY2(rows[1].startsWith("step,step,0.06,0.05,0.049,0.052") && rows[1].endsWith(",measured"),
             qPrintable(rows[1]));
    QVERIFY(std::abs(rows[1].split(',')[6].toDouble() - 0.2) < 1e-12);
    QVERIFY(rows.contains("operator,\"fc, the second\",0.002,,,,,modelled"));
    for (const QString& row : std::as_const(rows))
      if (row.endsWith(",modelled")) QVERIFY2(row.contains(",,,,,"), qPrintable(row));
    // Before and after calibration the same plan has the same name.
    report.calibrated = false;
    ValidationReport calibrated = report;
    calibrated.calibrated = true;
    const QString several = QString::fromStdString(write_validations_csv({report, calibrated}));
    QCOMPARE(several.count("\r\n"), 1 + 2 * (rows.size() - 1));
    QVERIFY2(several.startsWith("plan,calibrated,part,name,"), qPrintable(several.left(60)));
    QCOMPARE(several.count(",no,step,step,"), 1);
    QCOMPARE(several.count(",yes,step,step,"), 1);
  }

  void markdown_shows_what_was_not_measured() {
    ValidationReport report = test::sample_report();
    const QString text = QString::fromStdString(write_validation_markdown(report));
    QVERIFY(text.contains("| step | 60.0 ms | 50.0 ms | 49.0 ms to 52.0 ms | +20.0 % |"));
    QVERIFY(text.contains("| fc, the second | 2.00 ms | not measured (modelled) | - | - |"));
    QVERIFY(text.contains("equals"));
    report.numerics->gradient_error = 1;
    QVERIFY(QString::fromStdString(write_validation_markdown(report)).contains("DIFFERS FROM"));
    for (int i = 0; i < 100; ++i) report.operators.push_back(report.operators.front());
    QVERIFY(QString::fromStdString(write_validation_markdown(report)).contains("The 30 longest of 102"));
    report.operators.front().name = "a|b\nc";
    QVERIFY(QString::fromStdString(write_validation_markdown(report)).contains("a\\|b c"));
  }
};

QTEST_APPLESS_MAIN(ReportTest)
#include "report_test.moc"
