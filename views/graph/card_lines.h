// SPDX-License-Identifier: Apache-2.0
// Lines between the cards of the model's graph, which stand in rows like words. A card and the next are joined in their
// row, or round its end; all others by lanes between the rows, so that nothing that reads a tensor is without a line.
#pragma once

#include <QPointF>
#include <QRectF>
#include <map>
#include <vector>

namespace turnpoint::views {

struct CardPlace {
  QRectF rect;
  double in_y = 0, out_y = 0;  ///< where lines of neighbours enter and leave
  int row = 0;
};

class CardLines {
 public:
  /// `row_bottom`: by row; below it `gap` is free; `margin` is left and right of everything, half of it above.
  CardLines(std::vector<CardPlace> cards, std::vector<double> row_bottom, double right, double gap, double margin)
      : cards_(std::move(cards)), row_bottom_(std::move(row_bottom)), right_(right), gap_(gap), margin_(margin) {}

  /// From a card's side to another's, which is not the same.
  std::vector<QPointF> line(std::size_t from, std::size_t to);

 private:
  std::vector<QPointF> to_next(const CardPlace& from, const CardPlace& to) const;
  double lane(int row, std::size_t from, double left, double right);

  std::vector<CardPlace> cards_;
  std::vector<double> row_bottom_;
  double right_, gap_, margin_;
  struct Taken {
    std::size_t from;
    int slot;
    double left, right;
  };
  std::map<int, std::vector<Taken>> taken_;  // by the row above
};

}  // namespace turnpoint::views
