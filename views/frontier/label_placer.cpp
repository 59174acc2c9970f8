// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/label_placer.h"

#include <QLineF>
#include <algorithm>

namespace turnpoint::views {

namespace {

constexpr double kOverhang_px = 12;  ///< of words above or below an anchor that is not in their middle
constexpr double kClear_px = 7;      ///< between a leader and the middle of a marker that it passes

/// Liang-Barsky: does the segment touch the rectangle?
bool touches(const QRectF& r, const QLineF& s) {
  double enter = 0, leave = 1;
  const double p[4] = {-s.dx(), s.dx(), -s.dy(), s.dy()};
  const double q[4] = {s.x1() - r.left(), r.right() - s.x1(), s.y1() - r.top(), r.bottom() - s.y1()};
  for (int i = 0; i < 4; ++i) {
    if (p[i] == 0) {
      if (q[i] < 0) return false;
      continue;
    }
    const double t = q[i] / p[i];
    if (p[i] < 0)
      enter = std::max(enter, t);
    else
      leave = std::min(leave, t);
    if (enter > leave) return false;
  }
  return true;
}

}  // namespace

void LabelPlacer::block_line(const QPolygonF& line) {
  for (qsizetype i = 1; i < line.size(); ++i) segments_.emplace_back(line[i - 1], line[i]);
}

bool LabelPlacer::is_free(const QRectF& rectangle) const {
  if (!bounds_.contains(rectangle)) return false;
  const auto hit = [&](const QRectF& r) { return r.intersects(rectangle); };
  const auto cut = [&](const QLineF& s) { return touches(rectangle, s); };
  return std::none_of(rectangles_.begin(), rectangles_.end(), hit) &&
         std::none_of(segments_.begin(), segments_.end(), cut) && std::none_of(leaders_.begin(), leaders_.end(), cut);
}

std::optional<QRectF> LabelPlacer::place(QPointF anchor, QSizeF size, double gap, const std::vector<Side>& order) {
  for (const Side side : order) {
    QRectF r(QPointF(), size);
    switch (side) {
      case Side::right: r.moveTo(anchor.x() + gap, anchor.y() - size.height() / 2); break;
      case Side::left: r.moveTo(anchor.x() - gap - size.width(), anchor.y() - size.height() / 2); break;
      case Side::above: r.moveTo(anchor.x() - size.width() / 2, anchor.y() - gap - size.height()); break;
      case Side::below: r.moveTo(anchor.x() - size.width() / 2, anchor.y() + gap); break;
    }
    // Near a border, or beside other words, there may be room a little to one side.
    const bool upright = side == Side::above || side == Side::below;
    const double across = upright ? std::max(0.0, size.width() / 2 - kOverhang_px) : 0;
    const double along = upright ? 0 : size.height() / 3;
    for (const double shift : {0.0, -1.0, 1.0}) {
      const QRectF shifted = r.translated(shift * across, shift * along);
      if (!is_free(shifted) || names_another(shifted, anchor)) continue;
      block(shifted);
      return shifted;
    }
  }
  return std::nullopt;
}

QPointF nearest_in(const QRectF& rectangle, QPointF anchor) {
  return {std::clamp(anchor.x(), rectangle.left(), rectangle.right()),
          std::clamp(anchor.y(), rectangle.top(), rectangle.bottom())};
}

bool LabelPlacer::names_another(const QRectF& rectangle, QPointF anchor) const {
  return std::any_of(others_.begin(), others_.end(), [&](const std::pair<QPointF, double>& other) {
    const auto& [point, distance] = other;
    return QLineF(point, anchor).length() > 1 && QLineF(nearest_in(rectangle, point), point).length() < distance;
  });
}

bool LabelPlacer::may_lead(const QLineF& leader) const {
  const QPointF anchor = leader.p1();
  const bool crosses = std::any_of(others_.begin(), others_.end(), [&](const auto& other) {
    const QPointF at = other.first;
    return QLineF(at, anchor).length() > 1 &&
           touches({at.x() - kClear_px, at.y() - kClear_px, 2 * kClear_px, 2 * kClear_px}, leader);
  });
  const bool over = std::any_of(leaders_.begin(), leaders_.end(), [&](const QLineF& other) {
    return other.intersects(leader, nullptr) == QLineF::BoundedIntersection;
  });
  return !crosses && !over && std::none_of(rectangles_.begin(), rectangles_.end(), [&](const QRectF& words) {
    return words.width() > 2 * kClear_px + 6 && touches(words, leader);  // markers and the memory line are narrow
  });
}

std::optional<QRectF> LabelPlacer::place_away(QPointF anchor, QSizeF size) {
  constexpr double kDistances_px[] = {24, 36, 50, 66, 84, 104};
  // From near to far, above before below: curves fall. Beside the anchor, over it, or as far in as the border asks for.
  for (const double distance : kDistances_px)
    for (const double up : {-1.0, 1.0})
      for (const double left : {0.6 * distance, -size.width() / 2, -size.width() - 0.6 * distance, -1e6, 1e6}) {
        const double x =
            std::clamp(anchor.x() + left, bounds_.left(), std::max(bounds_.left(), bounds_.right() - size.width()));
        const QRectF r(QPointF(x, anchor.y() + up * 0.7 * distance - size.height() / 2), size);
        const bool near = std::abs(x - std::clamp(x, anchor.x() - size.width() - distance, anchor.x() + distance)) < 1;
        if (!near || !is_free(r) || names_another(r, anchor)) continue;
        if (!may_lead(QLineF(anchor, nearest_in(r, anchor)))) continue;
        block(r);
        return r;
      }
  return std::nullopt;
}

std::vector<QLineF> pieces_beside(const QLineF& line, const std::vector<QRectF>& rectangles) {
  const bool flat = line.dy() == 0;
  const double at = flat ? line.y1() : line.x1();
  const double begin = flat ? std::min(line.x1(), line.x2()) : std::min(line.y1(), line.y2());
  const double end = flat ? std::max(line.x1(), line.x2()) : std::max(line.y1(), line.y2());
  std::vector<std::pair<double, double>> gaps;
  for (const QRectF& r : rectangles) {
    if (flat ? at < r.top() || at > r.bottom() : at < r.left() || at > r.right()) continue;
    gaps.emplace_back(flat ? r.left() : r.top(), flat ? r.right() : r.bottom());
  }
  std::sort(gaps.begin(), gaps.end());
  std::vector<QLineF> pieces;
  double from = begin;
  const auto add = [&](double to) {
    if (to <= from) return;
    pieces.push_back(flat ? QLineF(from, at, to, at) : QLineF(at, from, at, to));
  };
  for (const auto& [left, right] : gaps) {
    add(std::min(left, end));
    from = std::max(from, right);
  }
  add(end);
  return pieces;
}

}  // namespace turnpoint::views
