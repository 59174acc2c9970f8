// SPDX-License-Identifier: Apache-2.0
#include "views/common/method_marks.h"

#include <QPainter>
#include <cmath>
#include <initializer_list>
#include <numbers>

namespace turnpoint::views {

namespace {

QPainterPath polygon(int corners, double radius, double start_degrees, double inner = 1) {
  QPolygonF points;
  const int count = inner < 1 ? corners * 2 : corners;
  for (int i = 0; i < count; ++i) {
    const double r = inner < 1 && i % 2 ? radius * inner : radius;
    const double angle = (start_degrees + 360.0 * i / count) * std::numbers::pi / 180;
    points << QPointF(r * std::cos(angle), r * std::sin(angle));
  }
  points << points.first();
  QPainterPath path;
  path.addPolygon(points);
  return path;
}

QPainterPath closed(std::initializer_list<QPointF> corners, double radius) {
  QPolygonF points;
  for (const QPointF& corner : corners) points << corner * radius;
  points << points.first();
  QPainterPath path;
  path.addPolygon(points);
  return path;
}

QPainterPath box(double half_width, double half_height) {
  QPainterPath path;
  path.addRect(-half_width, -half_height, half_width * 2, half_height * 2);
  return path;
}

QPainterPath disc(double radius) {
  QPainterPath path;
  path.addEllipse(QPointF(0, 0), radius, radius);
  return path;
}

// `down`: -1 for one that lies on its flat side.
QPainterPath half_disc(double radius, double down) {
  const double r = radius * 1.3, flat = -radius * 0.5 * down;
  QPainterPath path;
  path.moveTo(-r, flat);
  path.arcTo(-r, flat - r, r * 2, r * 2, 180, 180 * down);
  path.closeSubpath();
  return path;
}

QPainterPath tee(double radius, double down) {
  return closed({{-1.1, -1.1 * down},
                 {1.1, -1.1 * down},
                 {1.1, -0.35 * down},
                 {0.4, -0.35 * down},
                 {0.4, 1.1 * down},
                 {-0.4, 1.1 * down},
                 {-0.4, -0.35 * down},
                 {-1.1, -0.35 * down}},
                radius);
}

}  // namespace

QPainterPath shape_path(MethodShape shape, double radius) {
  switch (shape) {
    case MethodShape::circle: return disc(radius);
    case MethodShape::square: return box(radius * 0.9, radius * 0.9);
    case MethodShape::tilted_square: return polygon(4, radius * 1.2, -45);
    case MethodShape::diamond: return polygon(4, radius * 1.2, -90);
    case MethodShape::upright_cross: {
      const double arm = radius * 0.42;
      QPainterPath path = box(radius * 1.1, arm);
      path.addPath(box(arm, radius * 1.1));
      path.setFillRule(Qt::WindingFill);
      return path;
    }
    case MethodShape::triangle_up: return polygon(3, radius * 1.2, -90);
    case MethodShape::triangle_down: return polygon(3, radius * 1.2, 90);
    case MethodShape::triangle_right: return polygon(3, radius * 1.2, 0);
    case MethodShape::triangle_left: return polygon(3, radius * 1.2, 180);
    case MethodShape::pentagon_down: return polygon(5, radius * 1.1, 90);
    case MethodShape::hexagon: return polygon(6, radius * 1.1, 0);
    case MethodShape::tilted_hexagon: return polygon(6, radius * 1.1, 30);
    case MethodShape::star_of_four: return polygon(4, radius * 1.3, -90, 0.45);
    case MethodShape::star_of_five: return polygon(5, radius * 1.3, -90, 0.45);
    case MethodShape::star_of_six: return polygon(6, radius * 1.3, 0, 0.55);
    case MethodShape::bow_tie: return closed({{-1.05, -1.05}, {1.05, 1.05}, {1.05, -1.05}, {-1.05, 1.05}}, radius);
    case MethodShape::hourglass: return closed({{-1.05, -1.05}, {1.05, -1.05}, {-1.05, 1.05}, {1.05, 1.05}}, radius);
    case MethodShape::ring: {
      QPainterPath path = disc(radius * 1.15);
      path.addPath(disc(radius * 0.5));
      path.setFillRule(Qt::OddEvenFill);
      return path;
    }
    case MethodShape::three_points_up: return polygon(3, radius * 1.5, -90, 0.28);
    case MethodShape::three_points_down: return polygon(3, radius * 1.5, 90, 0.28);
    case MethodShape::post: return box(radius * 0.42, radius * 1.3);
    case MethodShape::plank: return box(radius * 1.3, radius * 0.42);
    case MethodShape::tee: return tee(radius, 1);
    case MethodShape::tee_down: return tee(radius, -1);
    case MethodShape::half_disc_up: return half_disc(radius, -1);
    case MethodShape::half_disc_down: return half_disc(radius, 1);
  }
  return {};
}

QPainterPath method_shape(const QString& method, double radius) {
  const MethodStyle* style = find_method_style(method.toStdString());
  return shape_path(style ? style->shape : MethodShape::circle, radius);
}

double method_radius(const QString& method) {
  const MethodStyle* style = find_method_style(method.toStdString());
  return style ? style->radius : MethodStyle{}.radius;
}

MethodMarker::MethodMarker(const QString& method, double radius, const QColor& color, bool hollow,
                           const QColor& hollow_fill, double pixel_ratio)
    : shape_(method_shape(method, radius)),
      pen_(hollow ? QPen(color, radius < 4 ? 1.2 : 1.6) : QPen(Qt::NoPen)),
      fill_(hollow ? hollow_fill : color) {
  const int side = static_cast<int>(std::ceil(radius * 2.6 + 4)) | 1;
  centre_ = side / 2.0;
  const int device = static_cast<int>(std::ceil(side * pixel_ratio));
  pixmap_ = QPixmap(device, device);
  pixmap_.setDevicePixelRatio(pixel_ratio);
  pixmap_.fill(Qt::transparent);
  QPainter painter(&pixmap_);
  painter.setRenderHint(QPainter::Antialiasing);
  draw_outline(painter, {centre_, centre_});
}

void MethodMarker::draw(QPainter& painter, QPointF at) const {
  painter.drawPixmap(at - QPointF(centre_, centre_), pixmap_);
}

void MethodMarker::draw_outline(QPainter& painter, QPointF at) const {
  painter.setPen(pen_);
  painter.setBrush(fill_);
  painter.drawPath(shape_.translated(at));
}

void draw_method_swatch(QPainter& painter, const QRect& area, const QString& method, bool frontier,
                        const QColor& color) {
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing);
  const QPointF center = QRectF(area).center();
  if (frontier) {
    const MethodStyle* style = find_method_style(method.toStdString());
    painter.setPen(QPen(color, style ? style->line_width : MethodStyle{}.line_width));
    painter.drawLine(QPointF(area.left() + 1, center.y()), QPointF(area.right() - 1, center.y()));
  }
  painter.translate(center);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPath(method_shape(method, frontier ? 3 : 4.5));
  painter.restore();
}

}  // namespace turnpoint::views
