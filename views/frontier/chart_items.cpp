// SPDX-License-Identifier: Apache-2.0
#include "views/frontier/chart_items.h"

#include <algorithm>

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

namespace {

/// Steps in pixels. Thousands of plans lie on a few hundred pixels: what cannot be told apart is not kept apart, and what
/// lies beyond the frame lies just beyond it. A painter keeps the room of the longest outline that it ever drew.
class StepLine {
 public:
  explicit StepLine(const QRectF& frame) : near_(frame.adjusted(-kBeyond, -kBeyond, kBeyond, kBeyond)) {}

  void add(QPointF at, bool last) {
    at = {std::clamp(at.x(), near_.left(), near_.right()), std::clamp(at.y(), near_.top(), near_.bottom())};
    if (!line_.isEmpty() && (at - line_.last()).manhattanLength() < 1 && !last) return;
    if (!line_.isEmpty()) line_ << QPointF(at.x(), line_.last().y());
    line_ << at;
  }
  const QPolygonF& line() const { return line_; }

 private:
  static constexpr double kBeyond = 16;  // wider than any pen and mark
  QRectF near_;
  QPolygonF line_;
};

}  // namespace

QPolygonF ChartItem::steps(const std::vector<ResultPoint>& points) const {
  StepLine line(area());
  for (const auto& p : points)
    if (drawable(p)) line.add(pixel(p), &p == &points.back());
  return line.line();
}

/// Between the curve and what no plan can beat; at least three pixels, or nobody sees that there is a bound.
void ChartItem::draw_band(QPainter& painter, const ChartSeries& subject) const {
  const auto& bound = subject.result->lower_bound;
  if (bound.empty()) return;
  StepLine lower(area());
  for (const auto& p : bound)
    if (std::isfinite(p.time))
      lower.add({pixel_x(static_cast<double>(p.memory)), pixel_y(p.time)}, &p == &bound.back());
  QPolygonF band = steps(subject.result->points);
  band.append(QPolygonF(lower.line().rbegin(), lower.line().rend()));
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
