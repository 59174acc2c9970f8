// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_items.h"

namespace turnpoint::views {

ChartItem::ChartItem(QCustomPlot* plot, const QString& layer, ChartState* state)
    : QCPAbstractItem(plot), state_(state) {
  setLayer(layer);
  setClipToAxisRect(false);
  setAntialiased(true);
}

double ChartItem::pixel_x(double bytes) const { return mParentPlot->xAxis->coordToPixel(state_->units.x(bytes)); }
double ChartItem::pixel_y(double seconds) const { return mParentPlot->yAxis->coordToPixel(state_->units.y(seconds)); }
QPointF ChartItem::pixel(const ResultPoint& point) const {
  return {pixel_x(static_cast<double>(point.memory_bytes)), pixel_y(point.time_s)};
}

QPolygonF ChartItem::steps(const std::vector<ResultPoint>& points) const {
  QPolygonF line;
  for (const auto& p : points) {
    if (!drawable(p)) continue;
    const QPointF at = pixel(p);
    // Thousands of plans on a few hundred pixels: what cannot be told apart need not be kept apart.
    if (!line.isEmpty() && (at - line.last()).manhattanLength() < 1 && &p != &points.back()) continue;
    if (!line.isEmpty()) line << QPointF(at.x(), line.last().y());
    line << at;
  }
  return line;
}

/// Between the curve and what no plan can beat; at least three pixels, or nobody sees that there is a bound.
void ChartItem::draw_band(QPainter& painter, const ChartSeries& subject) const {
  if (subject.result->lower_bound.empty()) return;
  QPolygonF band = steps(subject.result->points), lower;
  for (const auto& p : subject.result->lower_bound) {
    if (!std::isfinite(p.time)) continue;
    const QPointF at(pixel_x(static_cast<double>(p.memory)), pixel_y(p.time));
    if (!lower.isEmpty()) lower << QPointF(at.x(), lower.last().y());
    lower << at;
  }
  for (auto i = lower.size(); i-- > 0;) band << lower[i];
  QColor tint = state_->colors->method(subject.method);
  tint.setAlpha(48);
  painter.setBrush(tint);
  painter.setPen(QPen(tint, 3));
  painter.drawPolygon(band);
}

void BackdropItem::draw(QCPPainter* painter) {
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = area();
  painter->save();
  painter->setClipRect(frame);
  if (state_->data.memory_limit > 0 && !state_->empty()) {
    const double x = pixel_x(static_cast<double>(state_->data.memory_limit));
    if (x < frame.right())
      painter->fillRect(QRectF(QPointF(std::max(x, frame.left()), frame.top()), frame.bottomRight()),
                        colors.no_fit_area);
  }
  // The wide band of a sketch is for who asks, by hovering (OverlayItem): at rest the exact curve takes its place.
  const ChartSeries* subject = state_->data.subject();
  if (subject && !subject->coarse) draw_band(*painter, *subject);
  painter->restore();
}

}  // namespace turnpoint::views
