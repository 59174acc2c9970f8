// SPDX-License-Identifier: Apache-2.0
#include "views/graph/edge_line.h"

#include <QPainterPath>
#include <algorithm>
#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kCorner = 7;  // radius of an edge's bends, device pixels

void paint_arrow(QPainter& painter, const std::vector<QPointF>& line, const QColor& color, double width, double zoom) {
  const QPointF end = line.back();
  QPointF direction;
  for (std::size_t i = line.size() - 1; i-- > 0;) {
    direction = end - line[i];
    if (std::hypot(direction.x(), direction.y()) > 0.5) break;
  }
  const double length = std::hypot(direction.x(), direction.y());
  if (length < 0.5) return;
  direction /= length;
  const QPointF across(-direction.y(), direction.x());
  const double size = std::min(4 + width * 1.1, 12 * std::max(zoom, 0.7)), half = 2 + width * 0.75;
  const QPointF triangle[] = {end, end - direction * size + across * half, end - direction * size - across * half};
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawConvexPolygon(triangle, 3);
  painter.setBrush(Qt::NoBrush);
}

}  // namespace

void paint_edge_line(QPainter& painter, const std::vector<QPointF>& line, const QColor& color, double width,
                     bool rounded, double zoom) {
  painter.setPen(QPen(color, width, Qt::SolidLine, Qt::FlatCap, Qt::RoundJoin));
  if (!rounded || line.size() == 2) {
    painter.drawPolyline(line.data(), static_cast<int>(line.size()));
  } else {
    QPainterPath path(line.front());
    for (std::size_t i = 1; i + 1 < line.size(); ++i) {
      const QPointF in = line[i - 1] - line[i], out = line[i + 1] - line[i];
      const double a = std::hypot(in.x(), in.y()), b = std::hypot(out.x(), out.y()),
                   r = std::min({kCorner, a / 2, b / 2});
      if (a < 0.1 || b < 0.1) continue;
      path.lineTo(line[i] + in * (r / a));
      path.quadTo(line[i], line[i] + out * (r / b));
    }
    path.lineTo(line.back());
    painter.drawPath(path);
  }
  if (rounded) paint_arrow(painter, line, color, width, zoom);
}

double distance_to_line(QPointF p, QPointF a, QPointF b) {
  const QPointF d = b - a;
  const double length = QPointF::dotProduct(d, d);
  const double t = length > 0 ? std::clamp(QPointF::dotProduct(p - a, d) / length, 0.0, 1.0) : 0;
  const QPointF off = p - (a + t * d);
  return std::hypot(off.x(), off.y());
}

}  // namespace turnpoint::views
