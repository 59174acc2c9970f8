// SPDX-License-Identifier: Apache-2.0
#include "views/graph/scene_legend.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/graph/graph_painter.h"

namespace turnpoint::views {

MiniMap::MiniMap(SceneCanvas* canvas, QWidget* parent) : QWidget(parent), canvas_(canvas) {
  setAccessibleName(tr("Mini-map of the graph"));
  setCursor(Qt::PointingHandCursor);
  connect(canvas, &SceneCanvas::view_changed, this, qOverload<>(&QWidget::update));
}

void MiniMap::refresh() {
  stale_ = true;
  update();
}

double MiniMap::scale() const {
  const QSizeF scene = canvas_->scene_size();
  if (scene.isEmpty()) return 0;
  return std::min((width() - 6) / scene.width(), (height() - 6) / scene.height());
}

QPointF MiniMap::corner() const {
  const QSizeF drawn = canvas_->scene_size() * scale();
  return {(width() - drawn.width()) / 2, (height() - drawn.height()) / 2};
}

void MiniMap::paintEvent(QPaintEvent*) {
  const ThemeColors& theme = theme_colors(palette());
  QPainter painter(this);
  if (scale() <= 0) return;
  const double ratio = devicePixelRatioF();
  const QSize pixels = (QSizeF(size()) * ratio).toSize();
  if (stale_ || picture_.size() != pixels) {
    picture_ = QPixmap(pixels);
    picture_.setDevicePixelRatio(ratio);
    picture_.fill(theme.base);
    QPainter inner(&picture_);
    inner.translate(3, 3);
    canvas_->paint_to(inner, QSizeF(width() - 6, height() - 6), theme);
    stale_ = false;
  }
  painter.drawPixmap(0, 0, picture_);
  painter.setPen(theme.border);
  painter.drawRect(rect().adjusted(0, 0, -1, -1));
  const QRectF seen = canvas_->visible_scene();
  const QRectF frame = QRectF(seen.topLeft() * scale() + corner(), seen.size() * scale())
                           .intersected(QRectF(rect()).adjusted(1, 1, -1, -1));
  painter.setPen(QPen(theme.accent, 1.5));
  painter.drawRect(frame);
}

void MiniMap::mousePressEvent(QMouseEvent* event) {
  if (scale() > 0 && event->buttons() & Qt::LeftButton) canvas_->center_on((event->position() - corner()) / scale());
}

void MiniMap::mouseMoveEvent(QMouseEvent* event) { mousePressEvent(event); }

SceneLegend::SceneLegend(SceneCanvas* canvas, QWidget* parent) : QWidget(parent), map_(new MiniMap(canvas, this)) {
  setAccessibleName(tr("Legend"));
}

int SceneLegend::row_height() const { return QFontMetrics(graph_small_font(font())).height() + 4; }

void SceneLegend::place_map(int top) {
  const int room = height() - top - kPad, high = std::min(room, kMostMap);
  map_->setVisible(room >= kLeastMap);
  map_->setGeometry(kPad, height() - kPad - high, width() - 2 * kPad, high);
}

void SceneLegend::paint_ground(QPainter& painter) const {
  const ThemeColors& theme = theme_colors(palette());
  painter.fillRect(rect(), theme.base);
  painter.setPen(theme.border);
  painter.drawLine(0, 0, 0, height());
}

void SceneLegend::paint_title(QPainter& painter, const QRect& line, const QString& title) const {
  painter.setFont(graph_name_font(font()));
  painter.setPen(theme_colors(palette()).secondary);
  painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, title);
  painter.setFont(graph_small_font(font()));
}

void SceneLegend::paint_row(QPainter& painter, const QRect& row, const QColor& color, const QString& text,
                            const QString& value) const {
  const ThemeColors& theme = theme_colors(palette());
  const QFontMetrics metrics(painter.font());
  const QRect swatch(row.left(), row.center().y() - kSwatch / 2, kSwatch, kSwatch);
  painter.fillRect(swatch, color);
  painter.setPen(theme.axis);
  painter.drawRect(swatch.adjusted(0, 0, -1, -1));
  const int taken = kSwatch + 6 + (value.isEmpty() ? 0 : metrics.horizontalAdvance(value) + 8);
  painter.setPen(theme.text);
  painter.drawText(row.adjusted(kSwatch + 6, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                   metrics.elidedText(text, Qt::ElideMiddle, row.width() - taken));
  painter.setPen(theme.secondary);
  painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, value);
}

void SceneLegend::paint_widths(QPainter& painter, const QRect& line, const std::vector<LineWidth>& widths,
                               double gap) const {
  double x = line.left();
  for (const auto& [pen, text] : widths) {
    painter.setPen(pen);
    painter.drawLine(QPointF(x, line.center().y() + 1), QPointF(x + 16, line.center().y() + 1));
    painter.setPen(theme_colors(palette()).secondary);
    const double advance = QFontMetricsF(painter.font()).horizontalAdvance(text);
    painter.drawText(QRectF(x + 20, line.top(), advance + 4, line.height()), Qt::AlignLeft | Qt::AlignVCenter, text);
    x += 20 + advance + gap;
  }
}

bool SceneLegend::event(QEvent* event) {
  if (event->type() == QEvent::PaletteChange) map_->refresh();
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const int row = row_at(help->pos());
  QToolTip::showText(help->globalPos(), row < 0 ? QString() : tip_of(row), this);
  return true;
}

}  // namespace turnpoint::views
