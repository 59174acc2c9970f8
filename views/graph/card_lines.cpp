// SPDX-License-Identifier: Apache-2.0
#include "views/graph/card_lines.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

/// Of the gap between two rows; its middle is for the line round the end of a row.
constexpr double kSlots[] = {0.2, 0.8, 0.35, 0.65};
constexpr double kInset = 9;  // from a card's corner to where a lane leaves it

}  // namespace

std::vector<QPointF> CardLines::to_next(const CardPlace& a, const CardPlace& b) const {
  const QPointF from(a.rect.right(), a.out_y), to(b.rect.left(), b.in_y);
  std::vector<QPointF> points{from};
  if (a.row != b.row) {
    // Round the end of the line, like text.
    const double right = right_ - margin_ / 2, left = margin_ / 2;
    const double below = row_bottom_[std::size_t(a.row)] + gap_ / 2;
    for (const QPointF& p :
         {QPointF(right, from.y()), QPointF(right, below), QPointF(left, below), QPointF(left, to.y())})
      points.push_back(p);
  } else if (std::abs(from.y() - to.y()) > 0.5) {
    const double x = (from.x() + to.x()) / 2;
    points.emplace_back(x, from.y());
    points.emplace_back(x, to.y());
  }
  points.push_back(to);
  return points;
}

/// The height of a lane below `row` (-1: above the first) that no line of another card has between `left` and `right`;
/// lines of one card share theirs.
double CardLines::lane(int row, std::size_t from, double left, double right) {
  std::vector<Taken>& taken = taken_[row];
  int slot = 0;
  const auto own = std::find_if(taken.begin(), taken.end(), [&](const Taken& one) { return one.from == from; });
  if (own != taken.end()) {
    slot = own->slot;
  } else {
    const auto free = [&](int s) {
      return std::none_of(taken.begin(), taken.end(),
                          [&](const Taken& one) { return one.slot == s && one.left < right && left < one.right; });
    };
    while (slot + 1 < int(std::size(kSlots)) && !free(slot)) ++slot;
  }
  taken.push_back({from, slot, left, right});
  return row < 0 ? margin_ / 2 * kSlots[slot] : row_bottom_[std::size_t(row)] + gap_ * kSlots[slot];
}

std::vector<QPointF> CardLines::line(std::size_t from, std::size_t to) {
  const CardPlace &a = cards_[from], &b = cards_[to];
  if (from + 1 == to) return to_next(a, b);
  const double leaves = a.rect.right() - kInset, enters = b.rect.left() + kInset;
  std::vector<QPointF> points{{leaves, a.rect.bottom()}};
  const double below = lane(a.row, from, std::min(leaves, enters), std::max(leaves, enters));
  points.emplace_back(leaves, below);
  if (b.row != a.row && b.row != a.row + 1) {
    // Down or up in the margin.
    const double side = margin_ / 4, above = lane(b.row - 1, from, side, enters);
    points.emplace_back(side, below);
    points.emplace_back(side, above);
    points.emplace_back(enters, above);
  } else {
    points.emplace_back(enters, below);
  }
  points.emplace_back(enters, b.row == a.row ? b.rect.bottom() : b.rect.top());
  return points;
}

}  // namespace turnpoint::views
