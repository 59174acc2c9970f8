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

  /// A line from words to their point: nothing may cover it, and no other such line may cross it.
  void block_leader(const QLineF& leader) { leaders_.push_back(leader); }

  /// Words that name something else keep this far from `point`, or they would seem to name it.
  void keep_off(QPointF point, double distance) { others_.emplace_back(point, distance); }

  bool is_free(const QRectF& rectangle) const;
  /// Finds a free rectangle of `size` beside `anchor`, `gap` away from it, and blocks it. Points that are to be kept
  /// off count unless they are the anchor itself.
  std::optional<QRectF> place(QPointF anchor, QSizeF size, double gap, const std::vector<Side>& order);
  /// Whether a line may lead from a point to its words: through no other words or leader, and over no other's marker.
  bool may_lead(const QLineF& leader) const;
  /// The same further away, where a line to the anchor leads through nothing that is to be kept off.
  std::optional<QRectF> place_away(QPointF anchor, QSizeF size);

  const QRectF& bounds() const { return bounds_; }

 private:
  bool names_another(const QRectF& rectangle, QPointF anchor) const;

  QRectF bounds_;
  std::vector<QRectF> rectangles_;
  std::vector<QLineF> segments_, leaders_;
  std::vector<std::pair<QPointF, double>> others_;
};

/// Where a line from `anchor` meets the words in `rectangle`.
QPointF nearest_in(const QRectF& rectangle, QPointF anchor);

/// What is left of a horizontal or vertical line, from left to right or top to bottom, once it keeps clear of all
/// rectangles.
std::vector<QLineF> pieces_beside(const QLineF& line, const std::vector<QRectF>& rectangles);

}  // namespace turnpoint::views
