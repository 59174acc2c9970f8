// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/label_placer.h"

#include <QLineF>
#include <algorithm>

namespace turnpoint::views {

namespace {

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
         std::none_of(segments_.begin(), segments_.end(), cut);
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
    if (!is_free(r)) continue;
    block(r);
    return r;
  }
  return std::nullopt;
}

}  // namespace turnpoint::views
