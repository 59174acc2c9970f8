// SPDX-License-Identifier: Apache-2.0
// The published algorithms through the program itself: solve, search, their limits and what they say.
#include <QDir>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "frontier/layered.h"
#include "frontier/worked.h"
#include "plan_io/schema_check.h"

using namespace turnpoint;

using namespace turnpoint::test;

namespace {

const QStringList kSmallSearch = {"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--batch", "64"};

}  // namespace

class PublishedTest : public QObject {
  Q_OBJECT

  QTemporaryDir folder_;
  QString file(const char* name, const frontier::Problem& problem) const {
    const QString path = folder_.filePath(name);
    QFile out(path);
    if (!out.open(QIODevice::WriteOnly)) qFatal("cannot write %s", qPrintable(path));
    out.write(QByteArray::fromStdString(frontier::write_problem(problem).dump()));
    return path;
  }
  /// A result without points that says why.
  static void gave_up(const QJsonObject& result, const QString& limit = "0.2") {
    QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas")
                 .check("result@1", nlohmann::json::parse(QJsonDocument(result).toJson().toStdString())),
             std::string());
    QCOMPARE(result["method"].toString(), QString("ft-published-elimination"));
    QCOMPARE(result["scenario"]["method_options"].toString(), "time-limit=" + limit);
    QCOMPARE(result["points"].toArray().size(), 0);
    QCOMPARE(result["exact"].toBool(true), false);
    QVERIFY(result["gap"].isNull() && result["turning_point"].isNull());
    QVERIFY(result["search_s"].toDouble() > 0);
    const auto notes = result["notes"].toArray();
    QCOMPARE(notes.size(), 1);
    QVERIFY(notes[0].toString().startsWith(
        "no answer: the published elimination algorithm was not done within its time limit of " + limit + " s"));
  }

 private slots:
  void solve_gives_the_worked_frontiers_data() {
    QTest::addColumn<QString>("method");
    for (const char* method : {"published", "published-elimination"}) QTest::newRow(method) << method;
  }
  void solve_gives_the_worked_frontiers() {
    QFETCH(QString, method);
    for (const auto& problem : {frontier::test::f2_chain(), frontier::test::f3_diamond()}) {
      const QString path = file("worked.json", problem);
      const Run exact = run({"solve", path}), printed = run({"solve", path, "--method", method});
      QVERIFY2(exact.code == 0 && printed.code == 0, printed.err);
      QCOMPARE(printed.object()["points"], exact.object()["points"]);
      QCOMPARE(printed.object()["exact"].toBool(), true);
      QCOMPARE(printed.object()["gap"].toDouble(-1), 0.0);
      QCOMPARE(printed.object()["heuristic_eliminations"].toInt(-1), 0);
      QVERIFY(!exact.object().contains("heuristic_eliminations"));
    }
  }

  /// Ladders of operators with 70 configurations: no branch may be merged (4900 pairs), so a configuration is fixed.
  void solve_does_not_certify_heuristic_steps() {
    frontier::test::Generator g(5);
    frontier::Problem problem;
    for (std::uint32_t i = 0; i < 5; ++i) problem.nodes.push_back(frontier::test::layered_node(g, 70));
    for (std::uint32_t i = 0; i < 5; ++i)
      for (std::uint32_t j = i + 1; j < 5; ++j)
        problem.edges.push_back({i, j, frontier::test::random_classes(g, 70, 2),
                                 frontier::test::random_classes(g, 70, 2), 2, 2,
                                 frontier::test::resharding_table(g, 2, 2)});
    const Run printed = run({"solve", file("ladder.json", problem), "--method", "published"});
    QVERIFY2(printed.code == 0, printed.err);
    const auto answer = printed.object();
    QCOMPARE(answer["exact"].toBool(true), false);
    QVERIFY(answer.contains("gap") && answer["gap"].isNull());
    QVERIFY(answer["heuristic_eliminations"].toInt() > 0);
    QVERIFY(!answer["points"].toArray().isEmpty());
  }

  void limits_and_wrong_parameters_are_said_data() {
    QTest::addColumn<QStringList>("arguments");
    QTest::addColumn<int>("code");
    QTest::addColumn<QByteArray>("text");
    const QString large = file("large.json", frontier::test::layered_chain(1, 40, 120, 20));
    for (const char* method : {"published", "published-elimination"})
      QTest::addRow("solve %s", method) << QStringList{"solve", large, "--method", method, "--time-limit", "0.2"} << 4
                                        << QByteArray("was not done within its time limit of 0.2 s");
    const auto search = [](const char* method) { return kSmallSearch + QStringList{"--method", method}; };
    QTest::newRow("no such parameter") << search("ft-published:colour=2") << 2 << QByteArray("colour=2");
    QTest::newRow("no value") << search("ft-published:time-limit") << 2 << QByteArray("time-limit=SECONDS");
    QTest::newRow("no number") << search("ft-published:time-limit=soon") << 2 << QByteArray("expects a number");
    QTest::newRow("negative") << search("ft-published-elimination:time-limit=-1") << 2
                              << QByteArray("must be between 0 and");
    QTest::newRow("no heuristic") << search("ft-published:heuristic=best") << 2 << QByteArray("weighted, memory");
  }
  void limits_and_wrong_parameters_are_said() {
    QFETCH(QStringList, arguments);
    QFETCH(int, code);
    QFETCH(QByteArray, text);
    const Run result = run(arguments);
    QVERIFY2(result.code == code, result.err);
    QVERIFY2(result.err.contains(text), result.err);
    QCOMPARE(result.err.count('\n'), 1);
    QCOMPARE(result.out, QByteArray());
  }

  void search_agrees_with_ft() {
    const Run all =
        run(kSmallSearch + QStringList{"--method", "ft:micro-batches=1,ft-published,ft-published-elimination:time-limit=0"});
    QVERIFY2(all.code == 0, all.err);
    const auto results = all.object()["results"].toArray();
    QCOMPARE(results.size(), 3);
    for (int i = 1; i < 3; ++i) {
      QCOMPARE(results[i]["exact"].toBool(), true);
      QCOMPARE(results[i]["heuristic_eliminations"].toInt(-1), 0);
      const auto points = results[i]["points"].toArray(), expected = results[0]["points"].toArray();
      QCOMPARE(points.size(), expected.size());
      for (int k = 0; k < points.size(); ++k) {
        QCOMPARE(points[k]["memory_bytes"].toDouble(), expected[k]["memory_bytes"].toDouble());
        const double a = points[k]["time_s"].toDouble(), b = expected[k]["time_s"].toDouble();
        QVERIFY(std::abs(a - b) <= 1e-9 * b);
      }
    }
    QCOMPARE(results[2]["scenario"]["method_options"].toString(), QString("time-limit=0"));
  }

  /// A method that gives up at its own limit says so in the result, too, and leaves the others' results; frontiers
  /// without a memory limit exit 0.
  void one_that_gives_up_leaves_the_others() {
    const Run result = run({"search", "builtin:vgg16", "--hardware", "v100-16gb-2x8", "--method",
                            "data-parallel,ft-published-elimination:time-limit=0.2,optcnn"});
    QVERIFY2(result.code == 0, result.err);
    const auto results = result.object()["results"].toArray();
    QCOMPARE(results.size(), 3);
    QCOMPARE(results[0]["points"].toArray().size(), 1);
    QCOMPARE(results[2]["method"].toString(), QString("optcnn"));
    QCOMPARE(results[2]["points"].toArray().size(), 1);
    gave_up(results[1].toObject());
    QVERIFY2(result.err.contains("time limit of 0.2 s"), result.err);
  }

  /// Nothing at all was found: 4, and the result is written nevertheless.
  void one_that_gives_up_alone_writes_why() {
    for (const QStringList& objective : {QStringList{}, QStringList{"--objective", "mini-time"}}) {
      const Run result = run(QStringList{"search", "builtin:vgg16", "--hardware", "v100-16gb-2x8", "--method",
                                         "ft-published-elimination:time-limit=0.2"} +
                             objective);
      QVERIFY2(result.code == 4, result.err);
      gave_up(result.object());
      QCOMPARE(result.err.count('\n'), 1);
      QVERIFY2(result.err.contains("ft-published-elimination: the published elimination algorithm was not done within "
                                   "its time limit of 0.2 s"),
               result.err);
      const QString path = folder_.filePath("gave_up.json");
      QFile out(path);
      QVERIFY(out.open(QIODevice::WriteOnly) && out.write(result.out) == result.out.size() && out.flush());
      const Run plan = run({"export", path, "--point", "min-time", "--to", "json"});
      QVERIFY2(plan.code == 4 && plan.err.contains("the result has no point: no answer: the published"), plan.err);
    }
  }

  void profiles_keep_the_counts_that_were_done() {
    const Run result = run({"search", "builtin:vgg16", "--hardware", "v100-16gb-1x8", "--method",
                            "ft-published-elimination:time-limit=2", "--objective", "profile"});
    QVERIFY2(result.code == 0, result.err);
    const auto results = result.object()["results"].toArray();
    QCOMPARE(results.size(), 4);
    QCOMPARE(results[0]["points"].toArray().size(), 1);  // one device, one configuration each
    gave_up(results[3].toObject(), "2");
    QCOMPARE(results[3]["scenario"]["devices"].toInt(), 8);
    QCOMPARE(results[3]["objective"].toString(), QString("profile"));
    QVERIFY2(result.err.contains("on 8 devices: no answer"), result.err);
  }

  void exported_again_from_its_parameters() {
    const QString path = folder_.filePath("result.json");
    const Run search =
        run(kSmallSearch + QStringList{"--method", "ft-published:heuristic=memory:time-limit=100", "--out", path});
    QVERIFY2(search.code == 0, search.err);
    const Run plan = run({"export", path, "--point", "min-time", "--to", "json"});
    QVERIFY2(plan.code == 0, plan.err);
    QCOMPARE(plan.object()["format"].toString(), QString("turnpoint/plan@1"));
  }
};

QTEST_GUILESS_MAIN(PublishedTest)
#include "published_test.moc"
