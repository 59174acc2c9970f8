// SPDX-License-Identifier: Apache-2.0
// Greedy placement of labels next to their anchors: right, left, above, below until free; no free place, no label.
#pragma once

#include <QLineF>
#include <QPolygonF>
#include <QRectF>
#include <optional>
#include <vector>

namespace turnpoint::views {

class LabelPlacer {
 public:
  enum class Side { right, left, above, below };

  explicit LabelPlacer(QRectF bounds) : bounds_(bounds) {}

  /// Nothing may cover these. Lines are obstacles along every segment.
  void block(const QRectF& rectangle) { rectangles_.push_back(rectangle); }
  void block_line(const QPolygonF& line);

  bool is_free(const QRectF& rectangle) const;
  /// Finds a free rectangle of `size` beside `anchor`, `gap` away from it, and blocks it.
  std::optional<QRectF> place(QPointF anchor, QSizeF size, double gap, const std::vector<Side>& order);

  const QRectF& bounds() const { return bounds_; }

 private:
  QRectF bounds_;
  std::vector<QRectF> rectangles_;
  std::vector<QLineF> segments_;
};

/// What is left of a horizontal or vertical line, from left to right or top to bottom, once it keeps clear of all
/// rectangles.
std::vector<QLineF> pieces_beside(const QLineF& line, const std::vector<QRectF>& rectangles);

}  // namespace turnpoint::views
