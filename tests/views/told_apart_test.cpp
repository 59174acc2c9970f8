// SPDX-License-Identifier: Apache-2.0
// Names of siblings that are too long for their boxes still differ where they are shortened.
#include "views/graph/told_apart.h"

#include <QtTest>
#include <random>
#include <set>

using namespace turnpoint::views;

class ToldApartTest : public QObject {
  Q_OBJECT

 private slots:
  void parts_by_hand() {
    const auto parts =
        telling_parts({"block_3_of_the_stack", "block_12_of_the_stack", "head", "block_13_of_the_stack"});
    const auto text = [](const QString& name, NamePart part) { return name.mid(part.begin, part.end - part.begin); };
    QCOMPARE(text("block_3_of_the_stack", parts[0]), QString("3"));
    QCOMPARE(text("block_12_of_the_stack", parts[1]), QString("12"));
    QCOMPARE(text("head", parts[2]), QString("head"));
    QCOMPARE(text("block_13_of_the_stack", parts[3]), QString("13"));
    for (const NamePart& part : telling_parts({"same", "same"})) QCOMPARE(part.begin, part.end);
    QCOMPARE(telling_parts({"alone"})[0].end, qsizetype(0));
  }

  void what_fits_is_left_alone() {
    const QFontMetricsF metrics{QFont()};
    const QString name = "transformer_block_number_3_of_the_stack";
    QCOMPARE(elided_around(metrics, name, {24, 25}, metrics.horizontalAdvance(name) + 1), name);
    // Nothing to tell apart, or something that dots in the middle leave: as everywhere else.
    for (const NamePart part : {NamePart{}, NamePart{0, 4}, NamePart{35, 39}})
      QCOMPARE(elided_around(metrics, name, part, 120), metrics.elidedText(name, Qt::ElideMiddle, 120));
  }

  void shortened_names_differ() {
    std::mt19937 random(5);
    const QFontMetricsF metrics{QFont()};
    const auto word = [&](int length) {
      QString text;
      for (int i = 0; i < length; ++i) text += QChar('a' + int(random() % 26));
      return text;
    };
    for (int round = 0; round < 200; ++round) {
      const QString before = word(10 + int(random() % 40)), behind = word(10 + int(random() % 40));
      std::vector<QString> names;
      const int count = 2 + int(random() % 30);
      for (int i = 0; i < count; ++i) names.push_back(before + QString::number(i) + behind);
      const auto parts = telling_parts(names);
      const double width = metrics.horizontalAdvance("\u2026WWWWWW\u2026");
      std::set<QString> shown;
      for (int i = 0; i < count; ++i) {
        const QString text = elided_around(metrics, names[std::size_t(i)], parts[std::size_t(i)], width);
        QVERIFY(metrics.horizontalAdvance(text) <= width);
        QVERIFY2(text.contains(QString::number(i)), qPrintable(text));
        QVERIFY2(shown.insert(text).second, qPrintable(text));
      }
    }
  }
};

QTEST_MAIN(ToldApartTest)
#include "told_apart_test.moc"
