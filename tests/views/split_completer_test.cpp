// SPDX-License-Identifier: Apache-2.0
// The line for a split of one's own completes and explains what methods' records say.
#include <QAbstractItemView>
#include <QLineEdit>
#include <QtTest>

#include "core/search/registry.h"
#include "views/scenario/split_completer.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

SplitWords words() { return split_words(methods()); }

}  // namespace

class SplitCompleterTest : public QObject {
  Q_OBJECT

 private slots:
  void what_fits_the_words_so_far_is_offered_data() {
    QTest::addColumn<QString>("text");
    QTest::addColumn<QStringList>("there");
    QTest::addColumn<QStringList>("missing");
    using List = QStringList;
    QTest::newRow("begin") << "d" << List{"dp=", "tp=", "zero=1", "recompute=full", "fsdp", "megatron"}
                           << List{"group=node"};
    QTest::newRow("second") << "dp=4 z" << List{"zero=1", "tp="} << List{"dp=", "fsdp"};
    QTest::newRow("variant") << "fsdp g" << List{"group=node", "group=all", "zero=2"} << List{"dp=", "fsdp"};
    // Of all that divide unlike devices, those without parameters of their own, too.
    QTest::newRow("parts by hand") << "accpar by" << List{"by-hand=", "ratio=equal", "objective=volume"}
                                   << List{"dp=", "hypar"};
    QTest::newRow("parts alone") << "hypar b" << List{"by-hand="} << List{"dp=", "ratio=equal"};
    QTest::newRow("parts once") << "accpar by-hand=0@0.6 r" << List{"ratio=equal"} << List{"by-hand="};
    // Behind another method's name its parameters follow, be they splits of one's own.
    QTest::newRow("of none") << "update-sharding c" << List{"checkpoint=", "of=manual", "of=optcnn"}
                             << List{"tp=", "ratio=equal"};
    QTest::newRow("of a split") << "update-sharding of=manual t" << List{"tp=", "dp=", "checkpoint="}
                                << List{"of=manual", "ratio=equal"};
    QTest::newRow("of AccPar") << "update-sharding of=accpar r" << List{"ratio=equal", "checkpoint="} << List{"tp="};
    QTest::newRow("no parts") << "fsdp b" << List{"zero=2"} << List{"by-hand="};
    QTest::newRow("nothing begun") << "dp=4 " << List{} << List{"tp="};
  }
  void what_fits_the_words_so_far_is_offered() {
    QFETCH(QString, text);
    QFETCH(QStringList, there);
    QFETCH(QStringList, missing);
    QLineEdit line;
    const SplitCompleter completer(words(), &line);
    const QStringList offered = completer.offered(text);
    for (const QString& word : there) QVERIFY2(offered.contains(word), qPrintable(word));
    for (const QString& word : missing) QVERIFY2(!offered.contains(word), qPrintable(word));
  }

  void the_last_word_is_completed() {
    QLineEdit line;
    SplitCompleter completer(words(), &line);
    line.show();
    line.setFocus();
    QTest::keyClicks(&line, QStringLiteral("dp=4 zero"));
    QCOMPARE(completer.completionCount(), 3);
    QCOMPARE(completer.currentCompletion(), QStringLiteral("dp=4 zero=1"));
    QVERIFY(!completer.is_choosing());
    completer.popup()->hide();
  }

  void the_help_names_every_parameter() {
    const QString help = split_help(words());
    for (const OptionRecord& option : split_method().options)
      QVERIFY(help.contains(QString::fromUtf8(option.key.data(), qsizetype(option.key.size()))));
    QVERIFY(help.contains(QStringLiteral("fsdp zero=1|2|3 group=node|all shard=N|all micro-batches=N recompute=op|selective")));
    QVERIFY(help.contains(QStringLiteral("owt recompute=all|needed by-hand=CUT@RATIO[+CUT@RATIO]")));
  }
};

QTEST_MAIN(SplitCompleterTest)
#include "split_completer_test.moc"
