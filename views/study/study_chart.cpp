// SPDX-License-Identifier: Apache-2.0
#include "views/study/study_chart.h"

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
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

/// Pixels, but for the aspect of a plot.
constexpr double kLegend = 24, kTitle = 18, kCounts = 16, kNumbers = 40, kGap = 8, kAspect = 1.15, kMark = 4;

/// Both axes are of powers of two; the value axis has at most as many numbers as there is room for.
double log_of(double value) { return std::log2(value); }

/// Colours of methods are told apart by their shapes.
QPainterPath mark_of(const StudyLine& line) {
  if (!line.method.empty()) return method_shape(to_qt(line.method), kMark);
  QPainterPath square;
  square.addRect(-2, -2, 4, 4);
  return square;
}

QString axis_number(double value) {
  if (value >= 1000 && std::fmod(value, 1024) == 0) return grouped_number(value / 1024, 0) + QStringLiteral("Ki");
  return value >= 1 ? grouped_number(value, 0) : QStringLiteral("1/") + grouped_number(1 / value, 0);
}

}  // namespace

struct StudyChart::Scale {
  QRectF area;
  double low = 0, high = 1;  ///< logarithms of values at bottom and top
  std::size_t counts = 1;
  bool numbered = true, counted = true;  ///< has numbers beside it, counts below

  double x(std::size_t count) const { return area.left() + area.width() * (double(count) + 0.5) / double(counts); }
  double y(double value) const { return area.bottom() - area.height() * (log_of(value) - low) / (high - low); }
};

StudyChart::StudyChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("study_chart"));
  setMinimumSize(320, 160);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("Figures of the study, a plot for each network"));
}

void StudyChart::set_study(std::shared_ptr<const BatchStudy> study) {
  study_ = std::move(study);
  read_.reset();
  make_lines();
}

void StudyChart::show_figure(StudyFigure figure, const std::string& graph) {
  figure_ = figure;
  graph_ = graph;
  make_lines();
}

void StudyChart::make_lines() {
  lines_.clear();
  if (study_)
    for (const StudiedNetwork& network : study_->networks)
      lines_.push_back(study_lines(*study_, network, figure_, graph_));
  update();
}

std::vector<StudyChart::Scale> StudyChart::scales_for(QSizeF size) const {
  std::vector<Scale> scales;
  const std::size_t plots = lines_.size();
  if (plots == 0) return scales;
  const double height = size.height() - kLegend;
  const auto across =
      std::size_t(std::clamp(std::lround(std::sqrt(double(plots) * size.width() / height / kAspect)), 1L, long(plots)));
  // A row more or fewer where that leaves fewer places empty.
  const std::size_t about = (plots + across - 1) / across;
  std::size_t rows = about;
  const auto empty = [plots](std::size_t r) { return (plots + r - 1) / r * r - plots; };
  for (const std::size_t other : {about - 1, about + 1})
    if (other > 0 && other <= plots && empty(other) < empty(rows)) rows = other;
  const std::size_t columns = (plots + rows - 1) / rows;
  double least = 0, most = 1;
  for (const auto& lines : lines_)
    for (const StudyLine& line : lines)
      for (const double value : line.values)
        if (value > 0) least = std::min(least, log_of(value)), most = std::max(most, log_of(value));
  least = std::floor(least), most = std::ceil(most + 0.05);
  const double wide = (size.width() - kNumbers - kGap) / double(columns), high = (height - kCounts) / double(rows);
  for (std::size_t i = 0; i < plots; ++i) {
    const double column = double(i % columns), row = double(i / columns);
    Scale scale;
    scale.area = QRectF(kNumbers + column * wide, kLegend + row * high + kTitle, std::max(30.0, wide - kGap),
                        std::max(20.0, high - kTitle - 4));
    scale.low = least, scale.high = most;
    scale.counts = study_->devices.size();
    scale.numbered = i % columns == 0;
    scale.counted = i + columns >= plots;
    scales.push_back(scale);
  }
  return scales;
}

QColor StudyChart::color_of(const StudyLine& line) const {
  const ThemeColors& colors = theme_colors(palette());
  return line.method.empty() ? (line.dashed ? colors.secondary : colors.text)
                             : colors.method(line.method.substr(0, line.method.find(':')));
}

void StudyChart::paint_mark(QPainter& painter, const StudyLine& line, QPointF at, const QColor& color) const {
  const QPainterPath mark = mark_of(line).translated(at);
  painter.fillPath(mark, line.hollow ? theme_colors(palette()).base : color);
  if (line.hollow) painter.strokePath(mark, QPen(color, 1.2));
}

void StudyChart::paint_legend(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.setFont(secondary_font(font()));
  const QFontMetricsF metrics(painter.font());
  double x = 8;
  for (const StudyLine& line : lines_.front()) {
    const double wide = metrics.horizontalAdvance(line.title);
    painter.setPen(QPen(color_of(line), 2, line.dashed ? Qt::DashLine : Qt::SolidLine));
    painter.drawLine(QPointF(x, kLegend / 2), QPointF(x + 18, kLegend / 2));
    if (!line.dashed) paint_mark(painter, line, QPointF(x + 9, kLegend / 2), color_of(line));
    painter.setPen(colors.secondary);
    const double room = std::max(0.0, size.width() - x - 24);
    painter.drawText(QRectF(x + 23, 0, std::min(wide + 2, room), kLegend), Qt::AlignLeft | Qt::AlignVCenter,
                     metrics.elidedText(line.title, Qt::ElideRight, room));
    x += 23 + wide + 16;
  }
}

void StudyChart::paint_plot(QPainter& painter, const Scale& scale, std::size_t network) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFontMetricsF metrics(painter.font());
  const double spacing = scale.area.height() / (scale.high - scale.low);
  const int every = std::max(1, int(std::ceil(metrics.height() / spacing)));
  for (int power = int(scale.low); power <= int(scale.high); power += every) {
    const double value = std::exp2(power), y = scale.y(value);
    painter.setPen(QPen(colors.grid, 1));
    painter.drawLine(QPointF(scale.area.left(), y), QPointF(scale.area.right(), y));
    if (!scale.numbered) continue;
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, y - 10, kNumbers - 6, 20), Qt::AlignRight | Qt::AlignVCenter, axis_number(value));
  }
  painter.setPen(QPen(colors.axis, 1));
  painter.drawLine(scale.area.bottomLeft(), scale.area.bottomRight());
  painter.setPen(colors.text);
  painter.drawText(QRectF(scale.area.left(), scale.area.top() - kTitle, scale.area.width(), kTitle),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   metrics.elidedText(to_qt(study_->networks[network].title), Qt::ElideRight, scale.area.width()));
  painter.setPen(colors.secondary);
  for (std::size_t i = 0; i < scale.counts && scale.counted; ++i)
    painter.drawText(QRectF(scale.x(i) - 20, scale.area.bottom() + 2, 40, kCounts), Qt::AlignCenter,
                     QString::number(study_->devices[i]));
  if (read_ && read_->first == network) {
    painter.setPen(QPen(colors.accent, 1));
    painter.drawLine(QPointF(scale.x(read_->second), scale.area.top()),
                     QPointF(scale.x(read_->second), scale.area.bottom()));
  }
  painter.setBrush(Qt::NoBrush);
  // The first line is drawn last, over the others.
  for (std::size_t l = lines_[network].size(); l-- > 0;) {
    const StudyLine& line = lines_[network][l];
    const QColor color = color_of(line);
    QPainterPath path;
    std::vector<QPointF> marks;
    bool on = false;
    for (std::size_t i = 0; i < line.values.size(); ++i) {
      if (line.values[i] <= 0) {
        on = false;
        continue;
      }
      const QPointF at(scale.x(i), scale.y(line.values[i]));
      on ? path.lineTo(at) : path.moveTo(at);
      on = true;
      if (!line.dashed) marks.push_back(at);
    }
    painter.setPen(QPen(color,
                        line.dashed ? 1
                        : l == 0    ? 2
                                    : 1.4,
                        line.dashed ? Qt::DashLine : Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.drawPath(path);
    for (const QPointF at : marks) paint_mark(painter, line, at, color);
  }
}

void StudyChart::paint_to(QPainter& painter, QSizeF size) const {
  painter.fillRect(QRectF(QPointF(), size), theme_colors(palette()).base);
  if (lines_.empty()) return;
  paint_legend(painter, size);
  const auto scales = scales_for(size);
  for (std::size_t i = 0; i < scales.size(); ++i) paint_plot(painter, scales[i], i);
}

void StudyChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  paint_to(painter, size());
}

QRectF StudyChart::plot_area(std::size_t network) const { return scales_for(size())[network].area; }

QPointF StudyChart::position_of(std::size_t network, std::size_t count, double value) const {
  const Scale scale = scales_for(size())[network];
  return {scale.x(count), scale.y(value)};
}

std::optional<std::pair<std::size_t, std::size_t>> StudyChart::at(QPointF position) const {
  const auto scales = scales_for(size());
  for (std::size_t network = 0; network < scales.size(); ++network) {
    const QRectF& area = scales[network].area;
    if (!area.adjusted(0, -kTitle, 0, kCounts).contains(position)) continue;
    const double part = (position.x() - area.left()) / area.width() * double(scales[network].counts);
    return std::pair(network, std::min(scales[network].counts - 1, std::size_t(std::max(0.0, part))));
  }
  return std::nullopt;
}

void StudyChart::read(std::optional<std::pair<std::size_t, std::size_t>> what, QPoint global) {
  if (what)
    QToolTip::showText(
        global, study_text(*study_, study_->networks[what->first], study_->devices[what->second], figure_, graph_),
        this);
  else
    QToolTip::hideText();
  if (what == read_) return;
  read_ = what;
  update();
}

void StudyChart::mouseMoveEvent(QMouseEvent* event) { read(at(event->position()), event->globalPosition().toPoint()); }

void StudyChart::leaveEvent(QEvent*) { read(std::nullopt, {}); }

void StudyChart::keyPressEvent(QKeyEvent* event) {
  if (lines_.empty()) return QWidget::keyPressEvent(event);
  const std::size_t counts = study_->devices.size(), all = lines_.size() * counts;
  const std::size_t now = read_ ? read_->first * counts + read_->second : all;
  std::size_t next = now;
  switch (event->key()) {
    case Qt::Key_Left: next = now == 0 || now == all ? 0 : now - 1; break;
    case Qt::Key_Right: next = now == all ? 0 : std::min(all - 1, now + 1); break;
    case Qt::Key_Home: next = 0; break;
    case Qt::Key_End: next = all - 1; break;
    case Qt::Key_Escape: return read(std::nullopt, {});
    default: return QWidget::keyPressEvent(event);
  }
  read(std::pair(next / counts, next % counts), mapToGlobal(plot_area(next / counts).center().toPoint()));
}

}  // namespace turnpoint::views
