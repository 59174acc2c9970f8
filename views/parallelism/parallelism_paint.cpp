// SPDX-License-Identifier: Apache-2.0
// What the parallelism chart looks like: from the back to the front.
#include <QFontMetricsF>
#include <QPainter>
#include <QPainterPath>
#include <algorithm>
#include <cmath>
#include <optional>

#include "views/common/method_marks.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/frontier/label_placer.h"
#include "views/parallelism/parallelism_chart.h"
#include "views/parallelism/parallelism_scale.h"

namespace turnpoint::views {

namespace {

constexpr double kSubjectRadius = 3.6, kOtherRadius = 4;

QColor price_color(const ThemeColors& colors) { return colors.network[0]; }

QFont bold(QFont font) {
  font.setBold(true);
  return font;
}

/// As few decimals as tell neighbouring ticks apart.
QString tick_text(double value, double step) {
  int decimals = 0;
  for (double scaled = step; decimals < 6 && std::abs(scaled - std::round(scaled)) > 1e-6 * scaled; scaled *= 10)
    ++decimals;
  return grouped_number(value, decimals);
}

void marker(QPainter& painter, QPointF at, const std::string& method, double radius, const QColor& color, bool hollow,
            const QColor& fill) {
  painter.save();
  painter.translate(at);
  painter.setPen(hollow ? QPen(color, 1.4) : QPen(Qt::NoPen));
  painter.setBrush(hollow ? fill : color);
  painter.drawPath(method_shape(to_qt(method), radius));
  painter.restore();
}

double radius_of(bool subject) { return subject ? kSubjectRadius : kOtherRadius; }

}  // namespace

void ParallelismChart::paint(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.fillRect(QRectF(QPointF(), size), colors.base);
  labels_drawn_ = 0;
  if (!data_.nothing.isEmpty() || data_.counts.empty()) {
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(QPointF(), size).adjusted(24, 8, -24, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     data_.nothing);
    return;
  }
  const Scale scale = scale_for(size);
  LabelPlacer placer(scale.plot.adjusted(2, 2, -2, -2));
  paint_columns(painter, scale);
  paint_axes(painter, scale);
  paint_misfits(painter, scale, placer);
  paint_ideal(painter, scale);
  for (const ParallelismLine& line : data_.lines) {
    QPolygonF polygon;
    for (const ParallelismPoint& point : line.points) {
      if (!point.fits()) continue;
      const QPointF at(scale.x(point.devices), scale.y(value(point)));
      placer.block(QRectF(at.x() - 5, at.y() - 5, 10, 10));
      polygon << at;
    }
    placer.block_line(polygon);
  }
  paint_prices(painter, scale, placer);
  for (auto line = data_.lines.rbegin(); line != data_.lines.rend(); ++line)
    paint_line(painter, scale, *line, &*line == data_.subject());
  paint_names(painter, scale, placer);
}

void ParallelismChart::paint_columns(QPainter& painter, const Scale& scale) const {
  const ThemeColors& colors = theme_colors(palette());
  const auto fill = [&](const QRectF& column, const QColor& color) {
    painter.fillRect(column.toAlignedRect(), color);  // whole pixels: neighbours meet without a seam
  };
  for (std::size_t i = 0; i < data_.counts.size(); ++i) {
    const int devices = data_.counts[i];
    const QRectF column = scale.column(data_.counts, i);
    if (all_misfit(devices)) fill(column, colors.no_fit_area);
    if (devices == picked_) fill(column, colors.accent_background);
    if (devices == hovered_ && devices != picked_) {
      QColor tint = colors.accent_background;
      tint.setAlphaF(0.45F);
      fill(column, tint);
    }
  }
}

void ParallelismChart::paint_axes(QPainter& painter, const Scale& scale) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  const double per_unit = rising() ? 1 : scale.unit.per_second;
  painter.setFont(small);
  for (const double tick : scale.ticks()) {
    const double y = scale.y(tick);
    painter.setPen(QPen(colors.grid, 1));
    painter.drawLine(QPointF(scale.plot.left(), y), QPointF(scale.plot.right(), y));
    painter.setPen(colors.secondary);
    const double shown = tick * per_unit;
    painter.drawText(QRectF(0, y - 10, scale.plot.left() - 8, 20), Qt::AlignRight | Qt::AlignVCenter,
                     tick_text(shown, scale.logarithmic ? shown : scale.step * per_unit));
  }
  painter.setPen(QPen(colors.axis, 1));
  painter.drawLine(scale.plot.bottomLeft(), scale.plot.bottomRight());
  const QString title = throughput_           ? tr("Samples per second")
                        : data_.largest_batch ? tr("Largest batch that fits (samples)")
                                              : tr("Iteration time (%1)").arg(scale.unit.name);
  painter.setPen(colors.secondary);
  painter.drawText(QRectF(8, 8, scale.plot.width() * 0.5, 18), Qt::AlignLeft | Qt::AlignVCenter, title);
  const QString below = (data_.largest_batch ? tr("Devices (%1), fastest plan of the largest batch that fits")
                                             : tr("Devices (%1), fastest plan that fits"))
                            .arg(data_.device);
  if (scale.captioned)
    painter.drawText(QRectF(scale.plot.left(), scale.plot.bottom() + 24, scale.plot.width(), 18),
                     Qt::AlignHCenter | Qt::AlignVCenter, below);
  for (const int devices : data_.counts) {
    const double x = scale.x(devices);
    const QString text = grouped_number(devices, 0);
    const QRectF tag(x - metrics.horizontalAdvance(text) / 2 - 6, scale.plot.bottom() + 5,
                     metrics.horizontalAdvance(text) + 12, 18);
    if (devices == data_.devices) {
      painter.setPen(Qt::NoPen);
      painter.setBrush(colors.accent);
      painter.drawRoundedRect(tag, 2, 2);
      painter.setPen(colors.base);
    } else {
      painter.setPen(colors.secondary);
    }
    painter.drawText(tag, Qt::AlignCenter, text);
  }
}

void ParallelismChart::paint_misfits(QPainter& painter, const Scale& scale, LabelPlacer& placer) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  const QString caption = tr("does not fit");
  for (std::size_t i = 0; i < data_.counts.size(); ++i) {
    const int devices = data_.counts[i];
    const QRectF column = scale.column(data_.counts, i);
    if (all_misfit(devices)) {
      // One caption for a run of grey columns, at its first.
      if (i > 0 && all_misfit(data_.counts[i - 1])) continue;
      double right = column.right();
      for (std::size_t k = i + 1; k < data_.counts.size() && all_misfit(data_.counts[k]); ++k)
        right = scale.column(data_.counts, k).right();
      const QRectF area(column.left() + 8, column.top() + 6, right - column.left() - 12, 60);
      painter.setPen(colors.secondary);
      QRectF used;
      painter.drawText(area, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                       tr("nothing fits %1").arg(memory_text(data_.memory_limit)), &used);
      placer.block(used);
      ++labels_drawn_;
      continue;
    }
    std::vector<const ParallelismLine*> misfits;
    for (const ParallelismLine& line : data_.lines)
      if (const auto* point = line.at(devices); point && point->state == ParallelismPoint::State::does_not_fit)
        misfits.push_back(&line);
    if (misfits.empty()) continue;
    const double spacing = std::min(15.0, column.width() / static_cast<double>(misfits.size() + 1));
    double x = scale.x(devices) - spacing * static_cast<double>(misfits.size() - 1) / 2;
    const double y = scale.plot.top() + 10;
    QRectF area(x - 7, y - 7, spacing * static_cast<double>(misfits.size() - 1) + 14, 14);
    for (const ParallelismLine* line : misfits) {
      marker(painter, {x, y}, line->method, kOtherRadius, colors.method(line->method), true, colors.base);
      x += spacing;
    }
    if (metrics.horizontalAdvance(caption) + 6 < column.width()) {
      const QRectF words(scale.x(devices) - column.width() / 2, y + 7, column.width(), metrics.height());
      painter.setPen(colors.secondary);
      painter.drawText(words, Qt::AlignHCenter | Qt::AlignTop, caption);
      area |= QRectF(scale.x(devices) - metrics.horizontalAdvance(caption) / 2, y + 7,
                     metrics.horizontalAdvance(caption), metrics.height());
      ++labels_drawn_;
    }
    placer.block(area);
  }
}

void ParallelismChart::paint_ideal(QPainter& painter, const Scale& scale) const {
  const ParallelismLine* line = data_.subject();
  if (!line) return;
  const auto first = std::find_if(line->points.begin(), line->points.end(), [](const auto& p) { return p.fits(); });
  if (first == line->points.end() || first->devices == data_.counts.back()) return;
  QPolygonF ideal;
  for (int i = 0; i <= 48; ++i) {
    const double devices =
        first->devices * std::pow(static_cast<double>(data_.counts.back()) / first->devices, i / 48.0);
    const double more = devices / first->devices;
    ideal << QPointF(scale.x(devices), scale.y(rising() ? value(*first) * more : value(*first) / more));
  }
  QPen pen(theme_colors(palette()).axis, 1.3);
  pen.setDashPattern({1, 2.4});
  painter.save();
  painter.setClipRect(scale.plot);
  painter.setPen(pen);
  painter.setBrush(Qt::NoBrush);
  painter.drawPolyline(ideal);
  painter.restore();
}

void ParallelismChart::paint_prices(QPainter& painter, const Scale& scale, LabelPlacer& placer) const {
  if (!(scale.price_high > 0)) return;
  const ThemeColors& colors = theme_colors(palette());
  const QColor color = price_color(colors);
  const QFont small = secondary_font(font());
  painter.setFont(small);
  painter.setPen(color);
  painter.drawText(QRectF(scale.plot.width() * 0.5, 8, scale.plot.right() + 58 - scale.plot.width() * 0.5, 18),
                   Qt::AlignRight | Qt::AlignVCenter,
                   data_.largest_batch ? tr("Price per 1\u2009000\u2009000 samples ($)")
                                       : tr("Price per 1\u2009000 iterations ($)"));
  const double step = scale.price_high / scale.intervals;
  for (int i = 0; i <= scale.intervals; ++i)
    painter.drawText(QRectF(scale.plot.right() + 8, scale.price_y(i * step) - 10, 56, 20),
                     Qt::AlignLeft | Qt::AlignVCenter, tick_text(i * step, step));
  QPen pen(color, 1.4);
  pen.setDashPattern({4, 3});
  const ParallelismLine& line = *data_.subject();
  QPolygonF run;
  const auto flush = [&] {
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(run);
    placer.block_line(run);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    for (const QPointF& at : run) painter.drawRect(QRectF(at.x() - 2.6, at.y() - 2.6, 5.2, 5.2));
    run.clear();
  };
  for (const ParallelismPoint& point : line.points) {
    const auto price = data_.price(point);
    if (price)
      run << QPointF(scale.x(point.devices), scale.price_y(*price));
    else
      flush();
  }
  flush();
  const ParallelismPoint* best = data_.cheapest();
  if (!best) return;
  const QPointF at(scale.x(best->devices), scale.price_y(*data_.price(*best)));
  painter.setPen(QPen(color, 1.8));
  painter.setBrush(Qt::NoBrush);
  painter.drawEllipse(at, 7, 7);
  placer.block(QRectF(at.x() - 8, at.y() - 8, 16, 16));
  const QFont strong = bold(small);
  const QString text = tr("cheapest, %1").arg(price_text(*data_.price(*best)));
  const QSizeF size = QFontMetricsF(strong).size(Qt::TextSingleLine, text);
  using Side = LabelPlacer::Side;
  if (const auto place = placer.place(at, size, 10, {Side::below, Side::above, Side::right, Side::left})) {
    painter.setFont(strong);
    painter.setPen(color);
    painter.drawText(*place, Qt::AlignCenter, text);
    ++labels_drawn_;
  }
}

void ParallelismChart::paint_line(QPainter& painter, const Scale& scale, const ParallelismLine& line,
                                  bool subject) const {
  const ThemeColors& colors = theme_colors(palette());
  const QColor color = colors.method(line.method);
  // Neighbouring counts are joined; one that does not fit, or is not known yet, leaves a gap.
  for (std::size_t i = 1; i < line.points.size(); ++i) {
    const ParallelismPoint &a = line.points[i - 1], &b = line.points[i];
    if (!a.fits() || !b.fits()) continue;
    QPen pen(color, subject ? 2.2 : 1.4);
    if (a.coarse || b.coarse || a.stopped || b.stopped) pen.setDashPattern({3, 2});
    painter.setPen(pen);
    painter.drawLine(QPointF(scale.x(a.devices), scale.y(value(a))), QPointF(scale.x(b.devices), scale.y(value(b))));
  }
  for (const ParallelismPoint& point : line.points) {
    if (!point.fits()) continue;
    const QPointF at(scale.x(point.devices), scale.y(value(point)));
    marker(painter, at, line.method, radius_of(subject), color, point.coarse || point.stopped, colors.base);
    if (!subject || point.devices != data_.devices) continue;
    painter.setPen(QPen(colors.accent, 1.8));
    painter.setBrush(Qt::NoBrush);
    painter.drawEllipse(at, 7, 7);
  }
}

void ParallelismChart::paint_names(QPainter& painter, const Scale& scale, LabelPlacer& placer) const {
  const ThemeColors& colors = theme_colors(palette());
  using Side = LabelPlacer::Side;
  const QFont small = secondary_font(font());
  const auto label = [&](QPointF at, const QString& text, const QFont& with, const QColor& color,
                         const std::vector<Side>& order) {
    const QSizeF size = QFontMetricsF(with).size(Qt::TextSingleLine, text);
    const auto place = placer.place(at, size, 12, order);
    if (!place) return;
    painter.setFont(with);
    painter.setPen(color);
    painter.drawText(*place, Qt::AlignCenter, text);
    ++labels_drawn_;
  };
  for (const ParallelismLine& line : data_.lines) {
    const bool subject = &line == data_.subject();
    const ParallelismPoint* last = nullptr;
    for (const ParallelismPoint& point : line.points)
      if (point.fits()) last = &point;
    if (!last) continue;
    const QPointF at(scale.x(last->devices), scale.y(value(*last)));
    label(at, line.title, subject ? bold(font()) : small, colors.method(line.method),
          {Side::right, Side::above, Side::below, Side::left});
    const ParallelismPoint* here = subject ? line.at(data_.devices) : nullptr;
    if (!here || !here->fits()) continue;
    const QString text = throughput_ ? tr("%1 samples/s").arg(grouped_number(value(*here), value(*here) < 10 ? 1 : 0))
                         : data_.largest_batch ? tr("batch %1").arg(grouped_number(value(*here), 0))
                                               : time_in(scale.unit, here->time_s) + QChar(0xa0) + scale.unit.name;
    label({scale.x(here->devices), scale.y(value(*here))}, text, bold(small), colors.accent,
          {Side::above, Side::below, Side::left, Side::right});
  }
}

}  // namespace turnpoint::views
