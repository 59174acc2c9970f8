// SPDX-License-Identifier: Apache-2.0
#include "views/graph/loose_grid.h"

#include <QtTest>

using namespace turnpoint::views;

namespace {

/// Where boxes lie over each other or outside of the level, in words; empty if nowhere.
QString clash(const LevelLayout& layout) {
  const QRectF room = QRectF(QPointF(0, 0), layout.size).adjusted(-0.5, -0.5, 0.5, 0.5);
  for (std::size_t a = 0; a < layout.nodes.size(); ++a) {
    if (!room.contains(layout.nodes[a])) return QStringLiteral("node %1 is outside").arg(a);
    for (std::size_t b = 0; b < a; ++b)
      if (layout.nodes[a].intersects(layout.nodes[b])) return QStringLiteral("nodes %1 and %2").arg(b).arg(a);
  }
  return {};
}

}  // namespace

class LooseGridTest : public QObject {
  Q_OBJECT

 private slots:
  void few_loose_nodes_stay_where_they_were() {
    LevelRequest level;
    level.nodes.assign(5, QSizeF(60, 26));
    level.edges = {{0, 1}};
    QCOMPARE(loose_nodes(level), std::vector<bool>(5, false));
    level.nodes.push_back(QSizeF(60, 26));
    QCOMPARE(loose_nodes(level), (std::vector<bool>{false, false, true, true, true, true}));
  }

  void what_edges_hold_is_asked_for_alone() {
    LevelRequest level;
    for (int i = 0; i < 8; ++i) level.nodes.emplace_back(50 + i, 26);
    level.edges = {{2, 5}, {5, 7}};
    const auto loose = loose_nodes(level);
    const LevelRequest held = without_loose(level, loose);
    QCOMPARE(held.nodes, (std::vector<QSizeF>{{52, 26}, {55, 26}, {57, 26}}));
    QCOMPARE(held.edges, (std::vector<std::pair<int, int>>{{0, 1}, {1, 2}}));
    const LevelLayout above = layered_layout(held);
    const LevelLayout whole = with_loose_grid(above, level, loose, 200);
    QCOMPARE(whole.nodes[2], above.nodes[0]);
    QCOMPARE(whole.nodes[7], above.nodes[2]);
    QCOMPARE(whole.edges, above.edges);
    for (const int below : {0, 1, 3, 4, 6}) QVERIFY(whole.nodes[std::size_t(below)].top() > above.size.height());
    QCOMPARE(clash(whole), QString());
  }

  void thousands_fill_a_rectangle_in_order() {
    LevelRequest level;
    for (int i = 0; i < 3000; ++i) level.nodes.emplace_back(60 + i % 5 * 5, 26);
    const auto loose = loose_nodes(level);
    QVERIFY(without_loose(level, loose).nodes.empty());
    const LevelLayout whole = with_loose_grid({}, level, loose, 3600);
    QVERIFY(whole.size.width() <= 3600);
    QVERIFY(whole.size.width() > 3000);
    QVERIFY2(whole.size.height() < 3600, qPrintable(QString::number(whole.size.height())));
    for (std::size_t i = 0; i + 1 < 3000; ++i) {
      const QRectF &a = whole.nodes[i], &b = whole.nodes[i + 1];
      QVERIFY(b.top() > a.bottom() ? b.left() == 0 : b.top() == a.top() && b.left() > a.right());
    }
    QCOMPARE(clash(whole), QString());
  }

  void a_wide_box_does_not_widen_every_column() {
    LevelRequest level;
    level.nodes.assign(40, QSizeF(60, 26));
    level.nodes[7] = {700, 300};
    const LevelLayout whole = with_loose_grid({}, level, loose_nodes(level), 800);
    QCOMPARE(clash(whole), QString());
    QVERIFY(whole.size.width() <= 800);
    QVERIFY2(whole.size.height() < 500, qPrintable(QString::number(whole.size.height())));
  }

  void one_wider_than_the_room_has_a_row_of_its_own() {
    LevelRequest level;
    level.nodes.assign(6, QSizeF(60, 26));
    level.nodes[3] = {900, 26};
    const LevelLayout whole = with_loose_grid({}, level, loose_nodes(level), 200);
    QCOMPARE(clash(whole), QString());
    QCOMPARE(whole.size.width(), 900.0);
  }
};

QTEST_APPLESS_MAIN(LooseGridTest)
#include "loose_grid_test.moc"
