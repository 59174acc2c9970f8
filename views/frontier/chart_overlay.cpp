// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "views/common/format.h"
#include "views/common/method_marks.h"
#include "views/common/section_head.h"
#include "views/frontier/chart_items.h"
#include "views/frontier/label_placer.h"
#include "views/frontier/marker_groups.h"

namespace turnpoint::views {

void OverlayItem::draw(QCPPainter* painter) {
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = area();
  const ResultPoint* picked = state_->find_point(state_->selection ? state_->selection->point() : std::nullopt);
  const ResultPoint* hovered =
      state_->find_point(state_->selection ? state_->selection->hovered_point() : std::nullopt);
  painter->save();
  painter->setRenderHint(QPainter::Antialiasing);
  const auto inside = [&](const ResultPoint& p) { return frame.adjusted(-1, -1, 1, 1).contains(pixel(p)); };
  const ChartSeries* subject = state_->data.subject();
  if (hovered && subject && subject->coarse) {
    painter->save();
    painter->setClipRect(frame);
    draw_band(*painter, *subject);
    painter->restore();
  }
  if (hovered && hovered != picked && inside(*hovered)) {
    const QPointF at = pixel(*hovered);
    painter->setPen(QPen(colors.secondary, 1, Qt::DashLine));
    draw_beside_words(*painter, at, QPointF(at.x(), frame.bottom()));
    draw_beside_words(*painter, QPointF(frame.left(), at.y()), at);
    draw_tags(*painter, *hovered, colors.axis, colors.dark ? colors.base : QColor(Qt::white),
              picked && inside(*picked) ? picked : nullptr);
    painter->setPen(QPen(colors.text, 1.6));
    painter->setBrush(Qt::NoBrush);
    painter->drawEllipse(at, 5, 5);
  }
  if (picked && inside(*picked)) {
    const QPointF at = pixel(*picked);
    painter->setPen(QPen(colors.accent, 1));
    draw_beside_words(*painter, at + QPointF(0, 7), QPointF(at.x(), frame.bottom()));
    draw_beside_words(*painter, QPointF(frame.left(), at.y()), at - QPointF(7, 0));
    draw_tags(*painter, *picked, colors.accent, colors.dark ? colors.base : QColor(Qt::white));
    painter->setPen(QPen(colors.accent, 1.8));
    painter->setBrush(colors.base);
    painter->drawEllipse(at, 7, 7);
    painter->setPen(Qt::NoPen);
    painter->setBrush(colors.accent);
    painter->drawEllipse(at, 3.6, 3.6);
  }
  if (state_->fanned) draw_fan(*painter, *state_->fanned);
  if (hovered && inside(*hovered)) draw_read_out(*painter, *hovered, picked);
  painter->restore();
}

/// A line to an axis, with gaps where words stand: a name that is struck through reads as if it were not meant.
void OverlayItem::draw_beside_words(QPainter& painter, QPointF from, QPointF to) const {
  for (const QLineF& piece : pieces_beside({from, to}, state_->words)) painter.drawLine(piece);
}

void OverlayItem::hide_tick_labels(QPainter& painter, QCPAxis* axis, const QRectF& tag) {
  const QFontMetricsF metrics(axis->tickLabelFont());
  const QRectF frame = area();
  const QVector<double> ticks = axis->tickVector();
  const QVector<QString> labels = axis->tickVectorLabels();
  for (qsizetype i = 0; i < std::min(ticks.size(), labels.size()); ++i) {
    const double at = axis->coordToPixel(ticks[i]), wide = metrics.horizontalAdvance(labels[i]),
                 high = metrics.height();
    const QRectF label = axis->orientation() == Qt::Horizontal
                             ? QRectF(at - wide / 2 - 1, frame.bottom() + 3, wide + 2, high + 4)
                             : QRectF(frame.left() - wide - 9, at - high / 2, wide + 7, high);
    if (label.intersects(tag.adjusted(-2, -1, 2, 1))) painter.fillRect(label, state_->colors->base);
  }
}

OverlayItem::Tags OverlayItem::tags_of(const ResultPoint& point) const {
  const QRectF frame = area();
  const QFontMetricsF metrics(secondary_font(state_->font));
  const QPointF at = pixel(point);
  Tags tags;
  tags.memory = state_->units.memory_number(double(point.memory_bytes), mParentPlot->xAxis->range().size());
  tags.time = state_->units.time_number(point.time_s);
  const double high = metrics.height() + 2;
  const double wide = metrics.horizontalAdvance(tags.memory) + 10,
               wide_beside = metrics.horizontalAdvance(tags.time) + 10;
  tags.below = QRectF(at.x() - wide / 2, frame.bottom() + 4, wide, high);
  tags.beside = QRectF(std::max(0.0, frame.left() - wide_beside - 4), at.y() - high / 2, wide_beside, high);
  return tags;
}

void OverlayItem::draw_tags(QPainter& painter, const ResultPoint& point, const QColor& fill, const QColor& text,
                            const ResultPoint* other) {
  const QFont small = secondary_font(state_->font);
  Tags tags = tags_of(point);
  if (other) {
    // Two points that lie close: the tag of this one gives way to that of the other, on the side where its point is.
    const Tags others = tags_of(*other);
    if (tags.below.intersects(others.below))
      pixel(point).x() >= pixel(*other).x() ? tags.below.moveLeft(others.below.right() + 2)
                                            : tags.below.moveRight(others.below.left() - 2);
    if (tags.beside.intersects(others.beside))
      pixel(point).y() >= pixel(*other).y() ? tags.beside.moveTop(others.beside.bottom() + 2)
                                            : tags.beside.moveBottom(others.beside.top() - 2);
  }
  if (other) {
    // Of the same figures one is enough.
    const Tags others = tags_of(*other);
    if (tags.memory == others.memory) tags.below = {};
    if (tags.time == others.time) tags.beside = {};
  }
  const auto draw = [&](QCPAxis* axis, const QRectF& tag, const QString& figure) {
    if (tag.isEmpty()) return;
    hide_tick_labels(painter, axis, tag);
    painter.setPen(Qt::NoPen);
    painter.setBrush(fill);
    painter.drawRoundedRect(tag, 3, 3);
    painter.setFont(small);
    painter.setPen(text);
    painter.drawText(tag, Qt::AlignCenter, figure);
  };
  draw(mParentPlot->xAxis, tags.below, tags.memory);
  draw(mParentPlot->yAxis, tags.beside, tags.time);
}

/// Markers that cover each other, on a disc of their own, each with a line to where it belongs.
void OverlayItem::draw_fan(QPainter& painter, const MarkerGroup& group) const {
  const ThemeColors& colors = *state_->colors;
  const MarkerFan fan = fan_of(group, area());
  const auto& hovered = state_->selection->hovered_point();
  constexpr double kAround_px = 10;
  painter.setPen(QPen(colors.border, 1));
  painter.setBrush(colors.base);
  painter.drawEllipse(fan.centre, fan.radius + kAround_px, fan.radius + kAround_px);
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    const ChartSeries* series = state_->data.find(group.members[i].method);
    if (!series) continue;
    const bool meant = hovered == group.members[i];
    painter.setPen(QPen(meant ? colors.text : colors.axis, meant ? 1.4 : 0.8));
    painter.drawLine(group.at, fan.at[i]);
    const ResultPoint& point = series->result->points[group.members[i].index];
    const bool hollow = !state_->fits(*series, point) || series->beyond();
    MethodMarker(QString::fromStdString(series->method), method_radius(QString::fromStdString(series->method)) + meant,
                 colors.method(series->method), hollow, colors.base, 1)
        .draw_outline(painter, fan.at[i]);
    if (!meant) continue;
    painter.setPen(QPen(colors.text, 1.4));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(fan.at[i], 9, 9);
  }
  painter.setPen(Qt::NoPen);
  painter.setBrush(colors.axis);
  painter.drawEllipse(group.at, 2, 2);
}

void OverlayItem::draw_read_out(QPainter& painter, const ResultPoint& point, const ResultPoint* picked) {
  const ThemeColors& colors = *state_->colors;
  const QRectF frame = area();
  QFont head = state_->font;
  head.setBold(true);
  const QFont small = secondary_font(state_->font);
  const QString separator = QStringLiteral(" · ");
  const ChartUnits& units = state_->units;  // as the axes beside it say it
  QString title = units.memory_text(double(point.memory_bytes), mParentPlot->xAxis->range().size()) + separator +
                  units.time_text(point.time_s);
  const auto& hovered = state_->selection->hovered_point();
  const ChartSeries* series = hovered ? state_->data.find(hovered->method) : nullptr;
  if (series && series != state_->data.subject()) title.prepend(series->title + separator);
  struct Row {
    QString left, right;
  };
  std::vector<Row> rows{{QObject::tr("compute %1").arg(units.time_text(point.compute_s)),
                         QObject::tr("network %1").arg(units.time_text(point.network_s))}};
  if (point.simulated_memory_bytes && series && series->result->clock == Clock::additive)
    rows.push_back({QObject::tr("peak %1").arg(
                        units.memory_text(double(*point.simulated_memory_bytes), mParentPlot->xAxis->range().size())),
                    QObject::tr("plain sum %1")
                        .arg(units.memory_text(double(point.memory_bytes), mParentPlot->xAxis->range().size()))});
  if (picked && picked != &point) {
    rows.push_back(
        {QObject::tr("vs picked %1").arg(units.memory_difference(double(point.memory_bytes - picked->memory_bytes))),
         units.time_difference(point.time_s - picked->time_s)});
  }
  if (series && !state_->fits(*series, point)) rows.push_back({QObject::tr("does not fit"), {}});
  if (series && series->beyond()) rows.push_back({QObject::tr("does what the scenario switches off"), {}});
  if (series && series->stale)
    rows.push_back(
        {series->of.isEmpty() ? QObject::tr("of the scenario before") : QObject::tr("of %1").arg(series->of), {}});
  if (state_->fanned) {
    rows.push_back({QObject::tr("Beside it:"), {}});
    for (const PickedPoint& member : state_->fanned->members) {
      const ChartSeries* other = state_->data.find(member.method);
      if (!other || hovered == member) continue;
      const ResultPoint& p = other->result->points[member.index];
      rows.push_back({other->title, units.memory_text(double(p.memory_bytes), mParentPlot->xAxis->range().size()) +
                                        separator + units.time_text(p.time_s)});
    }
  }
  const QFontMetricsF big(head), body(small);
  double wide = big.horizontalAdvance(title);
  for (const Row& row : rows)
    wide = std::max(wide, body.horizontalAdvance(row.left) + body.horizontalAdvance(row.right) + 16);
  const QSizeF size(wide + 18, big.height() + static_cast<double>(rows.size()) * (body.height() + 2) + 12);

  // The first corner around the point that covers neither words nor markers nor curve; above right is quiet for a
  // falling line.
  std::vector<QPointF> markers;
  for (const ChartSeries& other : state_->data.series)
    if (!other.frontier && state_->visible(other))
      for (const ResultPoint& p : other.result->points)
        if (drawable(p)) markers.push_back(pixel(p));
  const QPointF at = pixel(point);
  const QPolygonF curve = state_->data.subject() ? steps(state_->data.subject()->line_points()) : QPolygonF();
  QRectF box, best, fan_at;
  double beside = 0;  // the fan is not to be covered
  if (state_->fanned) {
    const MarkerFan fan = fan_of(*state_->fanned, frame);
    beside = fan.radius;
    fan_at = QRectF(fan.centre - QPointF(beside, beside), QSizeF(2 * beside, 2 * beside));
  }
  double best_cost = 1e18;
  for (QPointF offset :
       {QPointF(14, -14 - size.height()), QPointF(14, -54 - size.height()), QPointF(54, -34 - size.height()),
        QPointF(24, 18), QPointF(-14 - size.width(), 18), QPointF(-14 - size.width(), -14 - size.height()),
        QPointF(14, -94 - size.height()), QPointF(24, 58), QPointF(-14 - size.width(), 58), QPointF(110, 18),
        QPointF(110, -14 - size.height())}) {
    offset.rx() += offset.x() > 0 ? beside : -beside;
    box = QRectF(at + offset, size);
    box.moveLeft(
        std::clamp(box.left(), frame.left() + 2, std::max(frame.left() + 2, frame.right() - size.width() - 2)));
    box.moveTop(std::clamp(box.top(), frame.top() + 2, std::max(frame.top() + 2, frame.bottom() - size.height() - 2)));
    double cost = box.adjusted(-8, -8, 8, 8).contains(at) ? 1000 : 0;
    if (box.intersects(fan_at)) cost += 2000;
    for (const QRectF& words : state_->words) {
      const QRectF shared = box.intersected(words);
      cost += shared.width() * shared.height() / 20;
    }
    for (const QPointF& marker : markers) cost += box.adjusted(-6, -6, 6, 6).contains(marker) ? 40 : 0;
    for (const QPointF& corner : curve) cost += box.contains(corner) ? 20 : 0;
    if (cost < best_cost) best_cost = cost, best = box;
  }
  painter.setPen(QPen(colors.border, 1));
  painter.setBrush(colors.dark ? colors.head : colors.base);
  painter.drawRoundedRect(best, 3, 3);
  painter.setFont(head);
  painter.setPen(colors.text);
  double y = best.top() + 5;
  painter.drawText(QRectF(best.left() + 9, y, wide, big.height()), Qt::AlignLeft | Qt::AlignVCenter, title);
  y += big.height() + 2;
  painter.setFont(small);
  painter.setPen(colors.secondary);
  for (const Row& row : rows) {
    const QRectF line(best.left() + 9, y, wide, body.height());
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, row.left);
    painter.drawText(line, Qt::AlignRight | Qt::AlignVCenter, row.right);
    y += body.height() + 2;
  }
}

}  // namespace turnpoint::views
