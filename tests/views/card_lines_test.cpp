// SPDX-License-Identifier: Apache-2.0
// Lines between cards in rows: where they begin and end, and that none runs through a card.
#include "views/graph/card_lines.h"

#include <QtTest>
#include <random>

using namespace turnpoint::views;

namespace {

constexpr double kGap = 34, kMargin = 26;

struct Rows {
  std::vector<CardPlace> cards;
  std::vector<double> bottom;
  double right = 0;
};

/// Up to six rows of one to seven cards of any size, in the middle of their rows as the graph has them.
Rows random_rows(std::mt19937_64& random) {
  Rows rows;
  const auto below = [&](int most) { return int(random() % std::uint64_t(most)); };
  double y = kMargin * 0.6;
  for (int row = 0, last = below(6); row <= last; ++row) {
    const std::size_t first = rows.cards.size();
    double x = kMargin, height = 0;
    for (int card = 0, count = 1 + below(7); card < count; ++card) {
      rows.cards.push_back({QRectF(x, 0, 40 + below(200), 30 + below(300)), 0, 0, row});
      x += rows.cards.back().rect.width() + 22;
      height = std::max(height, rows.cards.back().rect.height());
    }
    rows.right = std::max(rows.right, x - 22 + kMargin);
    for (std::size_t c = first; c < rows.cards.size(); ++c) {
      CardPlace& card = rows.cards[c];
      card.rect.moveTop(y + std::floor((height - card.rect.height()) / 2));
      card.in_y = card.out_y = card.rect.center().y();
    }
    rows.bottom.push_back(y + height);
    y += height + kGap;
  }
  return rows;
}

bool on_border(const QRectF& rect, QPointF p) {
  return rect.adjusted(-0.5, -0.5, 0.5, 0.5).contains(p) && !rect.adjusted(0.5, 0.5, -0.5, -0.5).contains(p);
}

bool crosses(const QRectF& rect, QPointF a, QPointF b) {
  const QRectF inside = rect.adjusted(1, 1, -1, -1);
  return std::max(a.x(), b.x()) > inside.left() && std::min(a.x(), b.x()) < inside.right() &&
         std::max(a.y(), b.y()) > inside.top() && std::min(a.y(), b.y()) < inside.bottom();
}

}  // namespace

class CardLinesTest : public QObject {
  Q_OBJECT

 private slots:
  void lines_join_their_cards_and_cross_none() {
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      std::mt19937_64 random(seed);
      const Rows rows = random_rows(random);
      if (rows.cards.size() < 2) continue;
      CardLines lines(rows.cards, rows.bottom, rows.right, kGap, kMargin);
      for (int i = 0; i < 30; ++i) {
        const std::size_t from = random() % rows.cards.size(), to = random() % rows.cards.size();
        if (from == to) continue;
        const auto line = lines.line(from, to);
        QVERIFY(line.size() >= 2);
        QVERIFY(on_border(rows.cards[from].rect, line.front()) && on_border(rows.cards[to].rect, line.back()));
        for (std::size_t p = 0; p + 1 < line.size(); ++p) {
          const QPointF way = line[p + 1] - line[p];
          QVERIFY(std::min(std::abs(way.x()), std::abs(way.y())) <= 0.5);
          QVERIFY(line[p].x() > 0 && line[p].x() < rows.right && line[p].y() > 0 &&
                  line[p].y() < rows.bottom.back() + kGap);
          for (const CardPlace& card : rows.cards)
            QVERIFY2(!crosses(card.rect, line[p], line[p + 1]),
                     qPrintable(QString("seed %1, card %2 to %3").arg(seed).arg(from).arg(to)));
        }
      }
    }
  }

  // Lines of two cards over the same stretch lie apart; those of one card share their lane.
  void lanes_of_different_cards_differ() {
    Rows rows;
    for (int card = 0; card < 6; ++card) rows.cards.push_back({QRectF(26 + 100 * card, 16, 80, 40), 36, 36, 0});
    CardLines lines(rows.cards, {56}, 660, kGap, kMargin);
    const auto first = lines.line(0, 3), again = lines.line(0, 5), second = lines.line(1, 4);
    QCOMPARE(first[1].y(), again[1].y());
    QVERIFY(std::abs(first[1].y() - second[1].y()) > 4);
  }
};

QTEST_APPLESS_MAIN(CardLinesTest)
#include "card_lines_test.moc"
