// SPDX-License-Identifier: Apache-2.0
// Methods that do not suit a model: alone an error, in a list left out beside the others' results.
#include <QJsonArray>
#include <QtTest>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "plan_io/schema_check.h"

using namespace turnpoint::test;

namespace {

const QStringList kLenet = {"search", "builtin:lenet", "--hardware", "v100-16gb-1x4", "--batch", "64", "--method"};

}  // namespace

class UnsuitableTest : public QObject {
  Q_OBJECT

 private slots:
  void left_out_of_a_list_data() {
    QTest::addColumn<QString>("method");
    QTest::addColumn<QString>("reason");
    QTest::newRow("by the model") << "megatron"
                                  << "the model has no attention";
    QTest::newRow("by its parameters") << "manual:dp=3"
                                       << "dp=3";
  }
  void left_out_of_a_list() {
    QFETCH(QString, method);
    QFETCH(QString, reason);
    for (const QStringList& objective : {QStringList{}, QStringList{"--objective", "mini-time"}}) {
      const Run all = run(kLenet + QStringList{"data-parallel," + method + ",optcnn"} + objective);
      QVERIFY2(all.code == kDone, all.err);
      QCOMPARE(SchemaCheck(TURNPOINT_SOURCE_DIR "/resources/schemas")
                   .check("results@1", nlohmann::json::parse(all.out.toStdString())),
               std::string());
      const auto results = all.object()["results"].toArray();
      QCOMPARE(results.size(), 3);
      QCOMPARE(results[0]["points"].toArray().size(), 1);
      QCOMPARE(results[2]["points"].toArray().size(), 1);
      QCOMPARE(results[1]["method"].toString(), method.section(':', 0, 0));
      QCOMPARE(results[1]["scenario"]["method_options"].toString(), method.section(':', 1));
      QCOMPARE(results[1]["points"].toArray().size(), 0);
      const auto notes = results[1]["notes"].toArray();
      QCOMPARE(notes.size(), 1);
      QVERIFY2(notes[0].toString().startsWith("left out: ") && notes[0].toString().contains(reason),
               qPrintable(notes[0].toString()));
      QVERIFY2(all.err.contains(qPrintable("note: method " + method + " is left out: ")), all.err);
      QVERIFY2(all.err.contains(qPrintable(reason)), all.err);

      const Run alone = run(kLenet + QStringList{method} + objective);
      QCOMPARE(alone.code, kUsage);
      QCOMPARE(alone.out, QByteArray());
      QVERIFY2(alone.err.startsWith(qPrintable("turnpoint-cli: method " + method + ": ")) &&
                   alone.err.contains(qPrintable(reason)),
               alone.err);
    }
  }

  void a_list_of_none_is_an_error() {
    const Run none = run(kLenet + QStringList{"megatron,manual:dp=3"});
    QCOMPARE(none.code, kUsage);
    QCOMPARE(none.out, QByteArray());
    for (const char* said :
         {"method megatron is left out: ", "method manual:dp=3 is left out: ", "none of the methods"})
      QVERIFY2(none.err.contains(said), none.err);
  }

  /// What is misspelt is no matter of the model.
  void wrong_names_end_the_command() {
    for (const char* list : {"data-parallel,optcmm", "data-parallel,megatron:colour=2", "data-parallel,random-serach"}) {
      const Run wrong = run(kLenet + QStringList{list});
      QCOMPARE(wrong.code, kUsage);
      QCOMPARE(wrong.out, QByteArray());
    }
  }
};

QTEST_GUILESS_MAIN(UnsuitableTest)
#include "unsuitable_test.moc"
