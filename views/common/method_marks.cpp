// SPDX-License-Identifier: Apache-2.0
#include "views/common/method_marks.h"

#include <QPainter>
#include <cmath>
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

}  // namespace

QPainterPath method_shape(const QString& full_name, double radius) {
  const QString method = full_name.section(u':', 0, 0);
  QPainterPath path;
  if (method == u"mesh-tensorflow" || method == u"fsdp") {
    path.addRect(-radius * 0.9, -radius * 0.9, radius * 1.8, radius * 1.8);
    return path;
  }
  if (method == u"optcnn") return polygon(3, radius * 1.2, -90);
  if (method == u"tofu") return polygon(3, radius * 1.2, 90);
  if (method == u"megatron") return polygon(4, radius * 1.2, -90);
  if (method == u"manual") {
    // An upright cross: made by hand.
    const double arm = radius * 0.42;
    path.addRect(-radius * 1.1, -arm, radius * 2.2, arm * 2);
    path.addRect(-arm, -radius * 1.1, arm * 2, radius * 2.2);
    path.setFillRule(Qt::WindingFill);
    return path;
  }
  if (method == u"accpar") return polygon(5, radius * 1.1, -90);
  if (method == u"pardnn") return polygon(6, radius * 1.1, 0);
  if (method == u"pardnn-published") return polygon(6, radius * 1.1, 30);
  if (method == u"heft") return polygon(3, radius * 1.2, 0);
  if (method == u"pipedream") return polygon(3, radius * 1.2, 180);
  if (method == u"layered-expert") return polygon(4, radius * 1.2, -45);
  if (method == u"metis") return polygon(5, radius * 1.1, 90);
  if (method == u"scotch") return polygon(4, radius * 1.3, -90, 0.45);
  if (method == u"round-robin") return polygon(6, radius * 1.3, 0, 0.55);
  if (method == u"trinity") return polygon(5, radius * 1.3, -90, 0.45);
  path.addEllipse(QPointF(0, 0), radius, radius);
  return path;
}

double method_radius(const QString& method) {
  if (method == u"ft") return 2.3;
  if (method == u"mesh-tensorflow") return 2.2;
  return 5;
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
    painter.setPen(QPen(color, method == u"ft" ? 2.2 : 1.5));
    painter.drawLine(QPointF(area.left() + 1, center.y()), QPointF(area.right() - 1, center.y()));
  }
  painter.translate(center);
  painter.setPen(Qt::NoPen);
  painter.setBrush(color);
  painter.drawPath(method_shape(method, frontier ? 3 : 4.5));
  painter.restore();
}

}  // namespace turnpoint::views
