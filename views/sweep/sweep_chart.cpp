// SPDX-License-Identifier: Apache-2.0
#include "views/sweep/sweep_chart.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/format.h"
#include "views/common/method_marks.h"
#include "views/common/round_step.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"
#include "views/sweep/sweep_panel.h"

namespace turnpoint::views {

namespace {

/// Pixels.
constexpr double kSweepLegend = 24, kSweepTitle = 20, kSweepNumbers = 60, kSweepGap = 14, kValues = 18, kCaption = 16;
constexpr double kRow = 10, kSweepMark = 4.5, kLeastCaptioned = 200, kLeastAbreast = 560, kWords = 520;
/// Times as large that the largest is as the smallest, from which an axis is logarithmic.
constexpr double kWide = 10;
/// Of the memory of a device, as far as the axis goes for plans that do not fit.
constexpr double kMostMemory = 1.6;
constexpr double kTopMost = 0.97;  ///< of the axis: marks of what needs more do not touch the words above

constexpr SweepFigure kFigures[] = {SweepFigure::time, SweepFigure::memory, SweepFigure::third};

}  // namespace

SweepChart::SweepChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("sweep_chart"));
  setMinimumSize(320, 130);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Time, peak memory and price against what is varied"));
}

void SweepChart::set_data(SweepData data) {
  if (data == data_) return;
  const auto values_of = [](const SweepData& shown) { return shown.sweep ? shown.sweep->axis : VariedAxis(); };
  const VariedAxis before = values_of(data_), now = values_of(data);
  if (before.quantity != now.quantity || before.values != now.values) hovered_ = 0;
  data_ = std::move(data);
  if (picked_ && (!data_.sweep || !data_.sweep->find(picked_->value, picked_->method))) set_picked(std::nullopt);
  setAccessibleDescription(describe(data_));
  update();
}

void SweepChart::set_picked(std::optional<Picked> picked) {
  if (picked == picked_) return;
  picked_ = std::move(picked);
  emit picked_changed();
  update();
}

QColor SweepChart::color_of(const std::string& method) const {
  return theme_colors(palette()).method(method.substr(0, method.find(':')));
}

std::vector<std::string> SweepChart::misfits() const {
  std::vector<std::string> list;
  for (const std::string& method : data_.sweep->methods)
    if (std::any_of(data_.sweep->cells.begin(), data_.sweep->cells.end(),
                    [&](const VariationCell& cell) { return cell.method == method && !cell.fits(); }))
      list.push_back(method);
  return list;
}

void SweepChart::set_range(Panel& panel) const {
  double least = 0, most = 0, limit = 0;
  for (const VariationCell& cell : data_.sweep->cells) {
    if (panel.figure == SweepFigure::memory && cell.memory_limit < kUnlimitedBytes)
      limit = std::max(limit, double(cell.memory_limit));
    const auto value = shown_value(data_, cell, panel.figure);
    if (!value) continue;
    most = std::max(most, *value);
    least = least > 0 ? std::min(least, *value) : *value;
  }
  if (panel.figure == SweepFigure::memory) {
    for (const VariationCell& cell : data_.sweep->cells) most = std::max(most, double(cell.least_bytes));
    most = limit > 0 ? std::clamp(most, limit, limit * kMostMemory) : most;
  }
  panel.empty = most <= 0;
  panel.time = time_unit_for(most);
  panel.memory = byte_unit_for(most);
  panel.logarithmic = panel.figure != SweepFigure::memory && least > 0 && most / least >= kWide;
  if (panel.logarithmic) {
    panel.low = least / 1.25, panel.high = most * 1.25;
    return;
  }
  const double unit = panel.figure == SweepFigure::memory ? panel.memory.bytes
                      : panel.figure == SweepFigure::time ? 1 / panel.time.per_second
                                                          : 1;
  const int intervals = panel.plot.height() < 120 ? 3 : 5;
  panel.step = round_tick_step((most > 0 ? most * 1.04 : unit) / unit / intervals) * unit;
  panel.high = std::max(1.0, std::ceil(most * 1.04 / panel.step)) * panel.step;
}

std::vector<SweepChart::Panel> SweepChart::panels_for(QSizeF size) const {
  std::vector<Panel> panels;
  if (!shows()) return panels;
  const auto& values = data_.sweep->axis.values;
  const double first = std::log2(double(values.front())), last = std::log2(double(values.back()));
  const double half = values.size() > 1 ? std::max(0.25, (last - first) / double(values.size() - 1) / 2) : 0.5;
  const bool abreast = size.width() >= kLeastAbreast;
  const auto places = legend_places(size.width());
  const double legend = places.empty() ? 0 : places.back().bottom();
  const double wide = size.width() / (abreast ? 3 : 1), high = (size.height() - legend) / (abreast ? 1 : 3);
  for (std::size_t i = 0; i < std::size(kFigures); ++i) {
    Panel panel;
    panel.figure = kFigures[i];
    panel.first = i == 0;
    panel.rate = !has_prices(*data_.sweep);
    panel.captioned = high >= kLeastCaptioned;
    const double column = abreast ? double(i) : 0, row = abreast ? 0 : double(i);
    const double below = kValues + (panel.captioned ? kCaption : 0);
    panel.plot = QRectF(column * wide + kSweepNumbers, legend + row * high + kSweepTitle,
                        std::max(60.0, wide - kSweepNumbers - kSweepGap), std::max(40.0, high - kSweepTitle - below));
    if (panel.first && !misfits().empty())
      panel.above = std::min(panel.plot.height() / 3, kRow * double(misfits().size()) + 4);
    panel.left = first - half, panel.right = last + half;
    set_range(panel);
    panels.push_back(panel);
  }
  return panels;
}

std::optional<QPointF> SweepChart::mark_at(const Panel& panel, const VariationCell& cell) const {
  const double x = panel.x(cell.value);
  if (const auto value = shown_value(data_, cell, panel.figure)) return QPointF(x, panel.y(*value));
  if (panel.figure == SweepFigure::memory && cell.least_bytes > 0)
    return QPointF(x, panel.y(std::min(double(cell.least_bytes), kTopMost * panel.high)));
  if (cell.fits() || !panel.first) return std::nullopt;
  const auto rows = misfits();
  const auto row = std::find(rows.begin(), rows.end(), cell.method) - rows.begin();
  return QPointF(x, panel.plot.top() + (double(row) + 0.5) * (panel.above - 4) / double(rows.size()));
}

/// Where each method is named, in as many rows as that takes.
std::vector<QRectF> SweepChart::legend_places(double width) const {
  const QFontMetricsF metrics(secondary_font(font()));
  std::vector<QRectF> places;
  double x = 8, y = 0;
  for (const std::string& method : data_.sweep->methods) {
    const double wide = std::min(26 + metrics.horizontalAdvance(data_.label(method)) + 2, width - 16);
    if (x > 8 && x + wide > width - 8) x = 8, y += kSweepLegend - 6;
    places.emplace_back(x, y, wide, kSweepLegend);
    x += wide + 16;
  }
  return places;
}

void SweepChart::paint_legend(QPainter& painter, double width) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.setFont(secondary_font(font()));
  const QFontMetricsF metrics(painter.font());
  const auto places = legend_places(width);
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::string& method = data_.sweep->methods[i];
    const QPointF at(places[i].left(), places[i].center().y());
    const bool variant = method.find(':') != std::string::npos;
    painter.setPen(QPen(color_of(method), 1.6, variant ? Qt::DashLine : Qt::SolidLine));
    painter.drawLine(at, at + QPointF(20, 0));
    const QPainterPath mark = method_shape(to_qt(method.substr(0, method.find(':'))), kSweepMark);
    painter.fillPath(mark.translated(at + QPointF(10, 0)), color_of(method));
    painter.setPen(colors.secondary);
    painter.drawText(places[i].adjusted(26, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(data_.label(method), Qt::ElideRight, places[i].width() - 25));
  }
}

void SweepChart::paint_axes(QPainter& painter, const Panel& panel) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFontMetricsF metrics(painter.font());
  const QRectF& plot = panel.plot;
  if (panel.above > 0) painter.fillRect(QRectF(plot.topLeft(), QSizeF(plot.width(), panel.above)), colors.no_fit_area);
  double last = plot.bottom() + metrics.height();
  for (const double tick : panel.ticks()) {
    const double y = panel.y(tick);
    painter.setPen(QPen(colors.grid, 1));
    painter.drawLine(QPointF(plot.left(), y), QPointF(plot.right(), y));
    if (last - y < metrics.height() * 0.9) continue;
    last = y;
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(plot.left() - kSweepNumbers, y - 10, kSweepNumbers - 6, 20),
                     Qt::AlignRight | Qt::AlignVCenter, panel.tick_text(tick));
  }
  painter.setPen(QPen(colors.axis, 1));
  painter.drawLine(plot.bottomLeft(), plot.bottomRight());
  QString title = figure_title(data_, panel.figure);
  if (panel.figure == SweepFigure::time) title += QStringLiteral(" (%1)").arg(panel.time.name);
  if (panel.figure == SweepFigure::memory) title += QStringLiteral(" (%1)").arg(panel.memory.name);
  painter.setPen(colors.text);
  painter.drawText(QRectF(plot.left() - kSweepNumbers + 8, plot.top() - kSweepTitle, plot.width() + kSweepNumbers - 8,
                          kSweepTitle - 3),
                   Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(title, Qt::ElideRight, plot.width() + 40));
}

void SweepChart::paint_values(QPainter& painter, const Panel& panel) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFont plain = painter.font();
  double free = panel.plot.left() - kSweepGap;
  for (const std::int64_t value : data_.sweep->axis.values) {
    QFont font = plain;
    font.setBold(value == data_.current);
    painter.setFont(font);
    const QString text = grouped_number(double(value), 0);
    const double wide = QFontMetricsF(font).horizontalAdvance(text) + 6, x = panel.x(value);
    painter.setPen(QPen(colors.axis, 1));
    painter.drawLine(QPointF(x, panel.plot.bottom()), QPointF(x, panel.plot.bottom() + 3));
    if (x - wide / 2 < free) continue;
    free = x + wide / 2;
    painter.setPen(value == data_.current ? colors.text : colors.secondary);
    painter.drawText(QRectF(x - wide / 2, panel.plot.bottom() + 3, wide, kValues - 3), Qt::AlignCenter, text);
  }
  painter.setFont(plain);
  if (!panel.captioned) return;
  const VariedQuantity& quantity = quantity_of(data_.sweep->axis.quantity);
  QString caption = quantity_text(data_.sweep->axis.quantity);
  if (quantity.unit[0] != '\0') caption += QStringLiteral(" (%1)").arg(to_qt(quantity.unit));
  painter.setPen(colors.secondary);
  painter.drawText(QRectF(panel.plot.left(), panel.plot.bottom() + kValues, panel.plot.width(), kCaption),
                   Qt::AlignCenter, caption);
}

/// The memory of a device, which may differ from value to value: what is reserved depends on the number of devices.
void SweepChart::paint_limit(QPainter& painter, const Panel& panel) const {
  if (panel.figure != SweepFigure::memory) return;
  const ThemeColors& colors = theme_colors(palette());
  QPolygonF line;
  std::int64_t limit = 0;
  for (const std::int64_t value : data_.sweep->axis.values)
    for (const std::string& method : data_.sweep->methods) {
      const VariationCell* cell = data_.sweep->find(value, method);
      if (!cell || cell->memory_limit <= 0 || cell->memory_limit == kUnlimitedBytes) continue;
      limit = cell->memory_limit;
      line << QPointF(panel.x(value), panel.y(double(limit)));
      break;
    }
  if (line.isEmpty()) return;
  line.prepend({panel.plot.left(), line.front().y()});
  line.append({panel.plot.right(), line.back().y()});
  painter.setPen(QPen(colors.axis, 1.4, Qt::DashLine));
  painter.drawPolyline(line);
  painter.setPen(colors.secondary);
  const QRectF room(panel.plot.left() + 4, line.front().y() - 16, panel.plot.width() - 8, 15);
  const bool above = room.top() >= panel.plot.top() + panel.above;
  QString words = tr("a plan may use %1").arg(memory_text(limit));
  if (QFontMetricsF(painter.font()).horizontalAdvance(words) > room.width()) words = memory_text(limit);
  painter.drawText(above ? room : room.translated(0, 17), Qt::AlignLeft | Qt::AlignVCenter, words);
}

/// Hollow where plans were found and none fits, in the figure of memory at the least that any needs; a cross where
/// there is no plan at all.
void SweepChart::paint_misfits(QPainter& painter, const Panel& panel) const {
  const ThemeColors& colors = theme_colors(palette());
  for (const VariationCell& cell : data_.sweep->cells) {
    const auto at = cell.fits() ? std::nullopt : mark_at(panel, cell);
    if (!at) continue;
    const QColor color = color_of(cell.method);
    if (cell.state == VariationCell::State::nothing_fits) {
      const QPainterPath mark = method_shape(to_qt(cell.method.substr(0, cell.method.find(':'))), 4).translated(*at);
      painter.fillPath(mark, colors.base);
      painter.strokePath(mark, QPen(color, 1.2));
      continue;
    }
    painter.setPen(QPen(color, 1.6, Qt::SolidLine, Qt::RoundCap));
    painter.drawLine(*at + QPointF(-3, -3), *at + QPointF(3, 3));
    painter.drawLine(*at + QPointF(-3, 3), *at + QPointF(3, -3));
  }
  if (panel.above <= 0) return;
  painter.setPen(colors.secondary);
  painter.drawText(QRectF(panel.plot.left() - kSweepNumbers, panel.plot.top(), kSweepNumbers - 6, panel.above),
                   Qt::AlignRight | Qt::AlignVCenter, tr("no plan"));
}

void SweepChart::paint_line(QPainter& painter, const Panel& panel, const std::string& method) const {
  const QColor color = color_of(method);
  QPainterPath path;
  std::vector<QPointF> marks;
  bool on = false;
  for (const std::int64_t value : data_.sweep->axis.values) {
    const VariationCell* cell = data_.sweep->find(value, method);
    const auto shown = cell ? shown_value(data_, *cell, panel.figure) : std::nullopt;
    // A value that is still to be asked leaves no gap; one at which nothing fits does.
    if (!shown) {
      on = on && !cell;
      continue;
    }
    const QPointF at(panel.x(value), panel.y(*shown));
    on ? path.lineTo(at) : path.moveTo(at);
    on = true;
    marks.push_back(at);
  }
  const bool variant = method.find(':') != std::string::npos;
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(color, method == data_.sweep->methods.front() ? 2 : 1.5, variant ? Qt::DashLine : Qt::SolidLine,
                      Qt::RoundCap, Qt::RoundJoin));
  painter.drawPath(path);
  const QPainterPath mark = method_shape(to_qt(method.substr(0, method.find(':'))), kSweepMark);
  for (const QPointF& at : marks) painter.fillPath(mark.translated(at), color);
}

void SweepChart::paint_picked(QPainter& painter, const Panel& panel) const {
  const ThemeColors& colors = theme_colors(palette());
  const auto line_at = [&](std::int64_t value, const QColor& color) {
    painter.setPen(QPen(color, 1));
    painter.drawLine(QPointF(panel.x(value), panel.plot.top()), QPointF(panel.x(value), panel.plot.bottom()));
  };
  if (hovered_ > 0) line_at(hovered_, colors.axis);
  if (!picked_) return;
  line_at(picked_->value, colors.accent);
  const VariationCell* cell = data_.sweep->find(picked_->value, picked_->method);
  const auto at = cell ? mark_at(panel, *cell) : std::nullopt;
  if (!at) return;
  painter.setPen(QPen(colors.accent, 2));
  painter.setBrush(Qt::NoBrush);
  painter.drawEllipse(*at, 8, 8);
}

void SweepChart::paint_to(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.fillRect(QRectF(QPointF(), size), colors.base);
  painter.setFont(secondary_font(font()));
  if (!shows()) {
    painter.setFont(font());
    painter.setPen(colors.secondary);
    const double side = std::max(24.0, (size.width() - kWords) / 2);
    painter.drawText(QRectF(QPointF(), size).adjusted(side, 8, -side, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     data_.nothing);
    return;
  }
  painter.setOpacity(data_.stale ? 0.55 : 1);
  paint_legend(painter, size.width());
  for (const Panel& panel : panels_for(size)) {
    painter.setFont(secondary_font(font()));
    paint_axes(painter, panel);
    paint_values(painter, panel);
    paint_limit(painter, panel);
    paint_picked(painter, panel);
    // The first method is drawn last, over the others.
    const auto& methods = data_.sweep->methods;
    for (auto method = methods.rbegin(); method != methods.rend(); ++method) paint_line(painter, panel, *method);
    paint_misfits(painter, panel);
  }
  painter.setOpacity(1);
}

void SweepChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  paint_to(painter, size());
}

QRectF SweepChart::plot_area(SweepFigure figure) const {
  const auto panels = panels_for(size());
  return panels.empty() ? QRectF() : panels[static_cast<std::size_t>(figure)].plot;
}

std::optional<QPointF> SweepChart::position_of(const VariationCell& cell, SweepFigure figure) const {
  const auto panels = panels_for(size());
  return panels.empty() ? std::nullopt : mark_at(panels[static_cast<std::size_t>(figure)], cell);
}

std::int64_t SweepChart::value_at(QPointF position) const {
  for (const Panel& panel : panels_for(size())) {
    if (!panel.plot.adjusted(-4, -kSweepTitle, 4, kValues).contains(position)) continue;
    const auto& values = data_.sweep->axis.values;
    return *std::min_element(values.begin(), values.end(), [&](std::int64_t a, std::int64_t b) {
      return std::abs(panel.x(a) - position.x()) < std::abs(panel.x(b) - position.x());
    });
  }
  return 0;
}

std::optional<SweepChart::Picked> SweepChart::nearest(QPointF position) const {
  const std::int64_t value = value_at(position);
  if (value == 0) return std::nullopt;
  std::optional<Picked> best;
  double distance = 0;
  for (const Panel& panel : panels_for(size())) {
    if (!panel.plot.adjusted(-4, -kSweepTitle, 4, kValues).contains(position)) continue;
    for (const std::string& method : data_.sweep->methods) {
      const VariationCell* cell = data_.sweep->find(value, method);
      const auto at = cell ? mark_at(panel, *cell) : std::nullopt;
      if (!at || (best && std::abs(at->y() - position.y()) >= distance)) continue;
      best = Picked{value, method};
      distance = std::abs(at->y() - position.y());
    }
  }
  return best;
}

void SweepChart::mouseMoveEvent(QMouseEvent* event) {
  const std::int64_t value = value_at(event->position());
  if (value > 0) {
    const auto near = nearest(event->position());
    QToolTip::showText(event->globalPosition().toPoint(), value_text(data_, value, near ? near->method : std::string()),
                       this);
  } else {
    QToolTip::hideText();
  }
  if (value == hovered_) return;
  hovered_ = value;
  update();
}

void SweepChart::leaveEvent(QEvent*) {
  hovered_ = 0;
  update();
}

void SweepChart::mousePressEvent(QMouseEvent* event) {
  if (event->button() == Qt::LeftButton) set_picked(nearest(event->position()));
}

void SweepChart::mouseDoubleClickEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return;
  set_picked(nearest(event->position()));
  if (picked_) emit requested();
}

/// To the next cell that is there, in either direction.
void SweepChart::step(int by_values, int by_methods) {
  if (!shows() || data_.sweep->cells.empty()) return;
  const auto& values = data_.sweep->axis.values;
  const auto& methods = data_.sweep->methods;
  if (!picked_) {
    const VariationCell* own = data_.sweep->find(data_.current, methods.front());
    const VariationCell& cell = own ? *own : data_.sweep->cells.front();
    return set_picked(Picked{cell.value, cell.method});
  }
  auto value = int(std::find(values.begin(), values.end(), picked_->value) - values.begin());
  auto method = int(std::find(methods.begin(), methods.end(), picked_->method) - methods.begin());
  for (;;) {
    value += by_values, method += by_methods;
    if (value < 0 || method < 0 || value >= int(values.size()) || method >= int(methods.size())) return;
    const Picked next{values[std::size_t(value)], methods[std::size_t(method)]};
    if (data_.sweep->find(next.value, next.method)) return set_picked(next);
  }
}

void SweepChart::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Left: return step(-1, 0);
    case Qt::Key_Right: return step(1, 0);
    case Qt::Key_Up: return step(0, -1);
    case Qt::Key_Down: return step(0, 1);
    case Qt::Key_Escape: return set_picked(std::nullopt);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (picked_) emit requested();
      return;
    default: QWidget::keyPressEvent(event);
  }
}

}  // namespace turnpoint::views
