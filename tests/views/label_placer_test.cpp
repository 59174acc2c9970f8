// SPDX-License-Identifier: Apache-2.0
// Where words stand beside points and lines.
#include "views/frontier/label_placer.h"

#include <QtTest>

using namespace turnpoint::views;

class LabelPlacerTest : public QObject {
  Q_OBJECT

 private slots:
  void labels_never_overlap() {
    LabelPlacer placer(QRectF(0, 0, 200, 100));
    using Side = LabelPlacer::Side;
    std::vector<QRectF> placed;
    for (int i = 0; i < 40; ++i) {
      const auto at =
          placer.place(QPointF(10 + 4 * i, 50), QSizeF(40, 12), 5, {Side::right, Side::left, Side::above, Side::below});
      if (!at) continue;
      QVERIFY(QRectF(0, 0, 200, 100).contains(*at));
      for (const QRectF& other : placed) QVERIFY(!other.intersects(*at));
      placed.push_back(*at);
    }
    QVERIFY(placed.size() >= 3 && placed.size() < 40);
  }

  void labels_avoid_lines() {
    LabelPlacer placer(QRectF(0, 0, 200, 100));
    placer.block_line({{0, 50}, {200, 50}});
    QVERIFY(!placer.is_free(QRectF(20, 45, 30, 10)));
    QVERIFY(placer.is_free(QRectF(20, 55, 30, 10)));
    const auto at =
        placer.place(QPointF(100, 50), QSizeF(40, 12), 4, {LabelPlacer::Side::right, LabelPlacer::Side::above});
    QVERIFY(at && at->bottom() < 50);
  }

  void leaders_cross_no_other_and_nothing_covers_them() {
    LabelPlacer placer(QRectF(0, 0, 200, 100));
    placer.block_leader({100, 10, 100, 90});
    QVERIFY(!placer.may_lead({50, 50, 150, 50}));
    QVERIFY(placer.may_lead({110, 50, 150, 50}));
    QVERIFY(!placer.is_free(QRectF(90, 40, 20, 10)));
  }

  void lines_keep_clear_of_words() {
    const std::vector<QRectF> words{{20, 40, 30, 20}, {45, 45, 15, 10}, {80, 10, 10, 20}, {90, 49, 30, 4}};
    QCOMPARE(pieces_beside({100, 50, 0, 50}, words), (std::vector<QLineF>{{0, 50, 20, 50}, {60, 50, 90, 50}}));
    QCOMPARE(pieces_beside({85, 0, 85, 60}, words), (std::vector<QLineF>{{85, 0, 85, 10}, {85, 30, 85, 60}}));
    QCOMPARE(pieces_beside({0, 5, 100, 5}, words), (std::vector<QLineF>{{0, 5, 100, 5}}));
    QVERIFY(pieces_beside({25, 50, 45, 50}, words).empty());
  }
};

QTEST_APPLESS_MAIN(LabelPlacerTest)
#include "label_placer_test.moc"
