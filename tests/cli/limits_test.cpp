// SPDX-License-Identifier: Apache-2.0
// `search --gap` and `--time-limit`, through the program itself.
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "plan_io/schema_check.h"

using namespace turnpoint::test;

namespace {

const QStringList kSearch = {"search", "builtin:alexnet", "--hardware", "v100-16gb-1x4", "--batch", "256"};

}  // namespace

class LimitsTest : public QObject {
  Q_OBJECT

  static void suits_schema(const QJsonObject& result) {
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas")
                 .check("result@1", nlohmann::json::parse(QJsonDocument(result).toJson().toStdString())),
             std::string());
  }

 private slots:
  /// Per cent, share and the method's own parameter are one thing; others of a list are left as they are.
  void a_gap_is_a_parameter_of_methods_that_prove_one() {
    const Run percent = run(kSearch + QStringList{"--gap", "2%"}), share = run(kSearch + QStringList{"--gap", "0.02"}),
              own = run(kSearch + QStringList{"--method", "ft:gap=0.02", "--gap", "0.05"});
    const auto points = percent.object()["points"].toArray();
    for (const Run& one : {percent, share, own}) {
      QCOMPARE(one.code, kDone);
      const QJsonObject result = one.object();
      suits_schema(result);
      QCOMPARE(result["scenario"]["method_options"].toString(), QString("gap=0.02"));
      QVERIFY(result["gap"].toDouble(1) <= 0.02 * (1 + 1e-6));
      QCOMPARE(result["points"].toArray(), points);
    }
    const Run several = run(kSearch + QStringList{"--method", "ft,optcnn", "--gap", "2%"});
    QCOMPARE(several.code, kDone);
    const auto results = several.object()["results"].toArray();
    QCOMPARE(results.size(), 2);
    QCOMPARE(results[0]["points"].toArray(), points);
    QVERIFY(results[1]["scenario"]["method_options"].toString().isEmpty());
  }

  /// A method that ends by itself says what it has; one that cannot is stopped, and says nothing.
  void after_a_limit_of_time_there_is_what_was_found() {
    const Run ft = run(kSearch + QStringList{"--time-limit", "0.001"});
    QCOMPARE(ft.code, kDone);
    const QJsonObject result = ft.object();
    suits_schema(result);
    QVERIFY(!result["points"].toArray().isEmpty());
    QCOMPARE(result["scenario"]["method_options"].toString(), QString("time-limit=0.001"));
    const Run both = run({"search", "builtin:inception-v3", "--hardware", "v100-16gb-2x8", "--batch", "256", "--method",
                          "optcnn,mesh-tensorflow", "--time-limit", "0.01"});
    QCOMPARE(both.code, kInfeasible);
    const auto results = both.object()["results"].toArray();
    QCOMPARE(results.size(), 2);
    for (const auto& value : results) {
      const QJsonObject one = value.toObject();
      suits_schema(one);
      QCOMPARE(one["points"].toArray().size(), 0);
      QCOMPARE(one["notes"][0].toString(), QString("no answer within the limit of 0.01 s"));
    }
    QVERIFY(both.err.contains("note: method optcnn: no answer within the limit of 0.01 s"));
  }

  void what_cannot_be_is_refused_in_a_sentence_data() {
    QTest::addColumn<QStringList>("options");
    QTest::addColumn<QByteArray>("sentence");
    const auto row = [](const char* name, const QStringList& options, const char* sentence) {
      QTest::newRow(name) << options << QByteArray(sentence);
    };
    row("no number", {"--gap", "much"}, "--gap expects a part of the time such as 0.3% or 0.003, not 'much'");
    row("too much", {"--gap", "101%"}, "not '101%'");
    row("below nothing", {"--gap", "-0.1"}, "not '-0.1'");
    row("not a number", {"--gap", "nan"}, "not 'nan'");
    row("nobody's", {"--method", "optcnn,tofu", "--gap", "1%"},
        "--gap is for methods that prove one (ft), and none of them was asked");
    row("no sign", {"--gap", "1"}, "--gap 1 would be 100 % of the time; --gap 1% is 1 per cent, and 100% that much");
    row("twice by its limit", {"--method", "ft,ft:gap=0.01", "--gap", "1%"}, "--method has 'ft:gap=0.01' twice");
    row("no time", {"--time-limit", "0"}, "--time-limit");
  }
  void what_cannot_be_is_refused_in_a_sentence() {
    QFETCH(QStringList, options);
    QFETCH(QByteArray, sentence);
    const Run refused = run(kSearch + options);
    QCOMPARE(refused.code, kUsage);
    QVERIFY2(refused.err.contains(sentence), refused.err.constData());
    QVERIFY(refused.out.isEmpty());
  }
};

QTEST_GUILESS_MAIN(LimitsTest)
#include "limits_test.moc"
