// SPDX-License-Identifier: Apache-2.0
#include "views/learning/learning_chart.h"

#include <QFontMetricsF>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>
#include <limits>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

constexpr double kAbove = 28, kBelow = 24, kBeside = 56, kRightOf = 14, kRatioOfRow = 1.9, kLeastHeight = 24;
constexpr int kIntervals = 4;

/// 1, 2 or 5 times a power of ten, at least `least`.
double even_step(double least) {
  if (!(least > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 5.0})
    if (digit * power >= least * (1 - 1e-12)) return digit * power;
  return 10 * power;
}

int decimals_of(double step) {
  int decimals = 0;
  for (double scaled = step; decimals < 6 && std::abs(scaled - std::round(scaled)) > 1e-6 * scaled; scaled *= 10)
    ++decimals;
  return decimals;
}

QString title_of(LearningChart::Plot plot, const TimeUnit& unit) {
  switch (plot) {
    case LearningChart::Plot::reward: return LearningChart::tr("Reward, and its moving baseline");
    case LearningChart::Plot::time: return LearningChart::tr("Best time so far (%1)").arg(unit.name);
    case LearningChart::Plot::entropy: return LearningChart::tr("Entropy of a decision (nats)");
  }
  return {};
}

QString number_text(double value) {
  const bool below = value < 0;
  return (below ? QStringLiteral("\u2212") : QString()) + grouped_number(std::abs(value), 3);
}

}  // namespace

struct LearningChart::Scale {
  Plot plot = Plot::reward;
  QRectF area;
  double first = 1, last = 2;  ///< iterations at the sides
  double low = 0, high = 1;    ///< values at bottom and top
  double step = 1;             ///< of values
  bool captioned = true;       ///< iterations are written below
  TimeUnit unit;

  double x(double iteration) const { return area.left() + area.width() * (iteration - first) / (last - first); }
  double y(double value) const { return area.bottom() - area.height() * (value - low) / (high - low); }
};

QString iteration_text(const LearningPoint& point) {
  QStringList lines{LearningChart::tr("Iteration %1, %2 placements tried")
                        .arg(grouped_number(double(point.iteration), 0), grouped_number(double(point.calls), 0))};
  if (point.best_s) lines << LearningChart::tr("Best so far: %1").arg(time_text(*point.best_s));
  lines << (point.reward ? LearningChart::tr("Reward: %1").arg(number_text(*point.reward))
                         : LearningChart::tr("None of its placements fits"));
  if (point.baseline) lines << LearningChart::tr("Baseline: %1").arg(number_text(*point.baseline));
  lines << LearningChart::tr("Entropy: %1 nats").arg(number_text(point.entropy));
  return lines.join(u'\n');
}

QString course_text(const LearningData& data) {
  if (data.points.empty()) return {};
  const LearningPoint& last = data.points.back();
  const QString course = LearningChart::tr(" · iteration %1, %2 placements tried")
                             .arg(grouped_number(double(last.iteration), 0), grouped_number(double(last.calls), 0));
  if (!last.best_s) return LearningChart::tr("No placement fits yet") + course;
  QString words = LearningChart::tr("Best %1").arg(time_text(*last.best_s));
  if (data.begun_s) words += QStringLiteral(", ") + to_qt(gain_words(*data.begun_s, *last.best_s));
  return words + course;
}

LearningChart::LearningChart(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("learning_chart"));
  setMinimumSize(320, 150);
  setMouseTracking(true);
  setFocusPolicy(Qt::StrongFocus);
  setAccessibleName(tr("How learning goes over its iterations"));
}

void LearningChart::set_data(LearningData data) {
  if (data == data_) return;
  data_ = std::move(data);
  if (read_ && *read_ >= data_.points.size()) read_.reset();
  setAccessibleDescription(data_.nothing.isEmpty() ? course_text(data_) : data_.nothing);
  update();
}

std::array<LearningChart::Scale, LearningChart::kPlots> LearningChart::scales_for(QSizeF size) const {
  const bool in_row = size.width() > kRatioOfRow * size.height();
  std::array<Scale, kPlots> scales;
  for (std::size_t i = 0; i < kPlots; ++i) {
    Scale& scale = scales[i];
    scale.plot = static_cast<Plot>(i);
    const double width = in_row ? size.width() / kPlots : size.width();
    const double height = in_row ? size.height() : size.height() / kPlots;
    scale.captioned = in_row || i + 1 == kPlots;
    scale.area = QRectF((in_row ? width * double(i) : 0) + kBeside, (in_row ? 0 : height * double(i)) + kAbove,
                        std::max(60.0, width - kBeside - kRightOf),
                        std::max(kLeastHeight, height - kAbove - (scale.captioned ? kBelow : 4)));
    double least = std::numeric_limits<double>::infinity(), most = -least;
    const auto see = [&](const std::optional<double>& value) {
      if (value) least = std::min(least, *value), most = std::max(most, *value);
    };
    for (const LearningPoint& point : data_.points) {
      if (scale.plot == Plot::reward) see(point.reward), see(point.baseline);
      if (scale.plot == Plot::time) see(point.best_s);
      if (scale.plot == Plot::entropy) see(point.entropy);
    }
    if (scale.plot == Plot::time) see(data_.begun_s);
    if (scale.plot == Plot::entropy) see(0.0);
    if (!(least <= most)) least = 0, most = 1;
    // What hardly changes is drawn as that, not as noise that fills the plot.
    const double room = std::max(most - least, 0.01 * std::max(std::abs(most), 1e-9));
    if (scale.plot == Plot::time) scale.unit = time_unit_for(most);
    const double per_unit = scale.plot == Plot::time ? scale.unit.per_second : 1;
    scale.step = even_step(room * per_unit / kIntervals) / per_unit;
    scale.low = std::floor(least / scale.step + 1e-9) * scale.step;
    scale.high = std::max(std::ceil(most / scale.step - 1e-9) * scale.step, scale.low + scale.step);
    if (!data_.points.empty()) {
      scale.first = double(std::min<std::uint64_t>(1, data_.points.front().iteration));
      scale.last = std::max(scale.first + 1, double(data_.points.back().iteration));
    }
  }
  return scales;
}

void LearningChart::paint_axes(QPainter& painter, const Scale& scale) const {
  const ThemeColors& colors = theme_colors(palette());
  const QFont small = secondary_font(font());
  const QFontMetricsF metrics(small);
  painter.setFont(small);
  const double per_unit = scale.plot == Plot::time ? scale.unit.per_second : 1;
  const int decimals = decimals_of(scale.step * per_unit);
  const auto intervals = int(std::lround((scale.high - scale.low) / scale.step));
  double free_below = scale.area.bottom() + 20;
  for (int i = 0; i <= intervals; ++i) {
    const double value = scale.low + i * scale.step, y = scale.y(value);
    painter.setPen(QPen(colors.grid, 1));
    painter.drawLine(QPointF(scale.area.left(), y), QPointF(scale.area.right(), y));
    if (y + metrics.height() / 2 > free_below) continue;  // there is no room for every number
    free_below = y - metrics.height() / 2;
    const double shown = std::abs(value) < scale.step / 2 ? 0 : value * per_unit;
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(scale.area.left() - kBeside, y - 10, kBeside - 8, 20), Qt::AlignRight | Qt::AlignVCenter,
                     (shown < 0 ? QStringLiteral("\u2212") : QString()) + grouped_number(std::abs(shown), decimals));
  }
  painter.setPen(QPen(colors.axis, 1));
  painter.drawLine(scale.area.bottomLeft(), scale.area.bottomRight());
  painter.setPen(colors.secondary);
  painter.drawText(
      QRectF(scale.area.left() - kBeside + 8, scale.area.top() - kAbove + 4, scale.area.width() + kBeside, 18),
      Qt::AlignLeft | Qt::AlignVCenter,
      metrics.elidedText(title_of(scale.plot, scale.unit), Qt::ElideRight, scale.area.width() + kBeside - 8));
  if (!scale.captioned) return;
  const double step = std::max(1.0, even_step((scale.last - scale.first) / kIntervals));
  for (double at = std::ceil(scale.first / step) * step; at <= scale.last; at += step) {
    const QString text = grouped_number(at, 0);
    const double half = metrics.horizontalAdvance(text) / 2 + 1;
    const double x = std::clamp(scale.x(at), scale.area.left() + half,
                                std::max(scale.area.left() + half, scale.area.right() + kRightOf - half));
    painter.drawText(QRectF(x - half, scale.area.bottom() + 4, 2 * half, 16), Qt::AlignCenter, text);
  }
}

void LearningChart::paint_curves(QPainter& painter, const Scale& scale) const {
  const ThemeColors& colors = theme_colors(palette());
  const QColor color = colors.method(data_.method);
  const auto curve = [&](const QPen& pen, bool in_steps, const auto& value_of) {
    QPainterPath path;
    bool on = false;
    double before = 0;
    for (const LearningPoint& point : data_.points) {
      const std::optional<double> value = value_of(point);
      if (!value) {
        on = false;
        continue;
      }
      const QPointF at(scale.x(double(point.iteration)), scale.y(*value));
      if (!on) path.moveTo(at);
      if (on && in_steps) path.lineTo(at.x(), before);
      if (on) path.lineTo(at);
      before = at.y();
      on = true;
    }
    painter.setPen(pen);
    painter.setBrush(Qt::NoBrush);
    painter.drawPath(path);
    if (data_.points.size() == 1 && on) painter.drawPoint(path.currentPosition());
  };
  QPen strong(color, 2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin);
  QColor pale = color;
  pale.setAlphaF(0.45F);
  switch (scale.plot) {
    case Plot::reward:
      curve(QPen(pale, 1.2, Qt::SolidLine, Qt::RoundCap), false, [](const auto& p) { return p.reward; });
      curve(strong, false, [](const auto& p) { return p.baseline; });
      break;
    case Plot::time:
      if (data_.begun_s) {
        const double y = scale.y(*data_.begun_s);
        painter.setPen(QPen(colors.secondary, 1.2, Qt::DashLine));
        painter.drawLine(QPointF(scale.area.left(), y), QPointF(scale.area.right(), y));
        painter.setFont(secondary_font(font()));
        const QFontMetricsF metrics(painter.font());
        const QString words = tr("began with %1").arg(time_text(*data_.begun_s));
        const double above = y - metrics.height() - 2;
        const QRectF place(scale.area.left() + 6, above > scale.area.top() - 4 ? above : y + 3, scale.area.width() - 12,
                           metrics.height());
        painter.setPen(colors.secondary);
        painter.drawText(place, Qt::AlignRight | Qt::AlignVCenter, words);
      }
      curve(strong, true, [](const auto& p) { return p.best_s; });
      break;
    case Plot::entropy: curve(strong, false, [](const auto& p) { return std::optional(p.entropy); }); break;
  }
  if (!read_) return;
  const double x = scale.x(double(data_.points[*read_].iteration));
  painter.setPen(QPen(colors.accent, 1));
  painter.drawLine(QPointF(x, scale.area.top()), QPointF(x, scale.area.bottom()));
}

void LearningChart::paint_to(QPainter& painter, QSizeF size) const {
  const ThemeColors& colors = theme_colors(palette());
  painter.fillRect(QRectF(QPointF(), size), colors.base);
  if (!data_.nothing.isEmpty() || data_.points.empty()) {
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(QPointF(), size).adjusted(24, 8, -24, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     data_.nothing);
    return;
  }
  for (const Scale& scale : scales_for(size)) {
    paint_axes(painter, scale);
    painter.save();
    painter.setClipRect(scale.area.adjusted(-2, -4, 2, 2));
    paint_curves(painter, scale);
    painter.restore();
  }
}

QRectF LearningChart::plot_area(Plot plot) const { return scales_for(size())[static_cast<std::size_t>(plot)].area; }

QPointF LearningChart::position_of(Plot plot, const LearningPoint& point, double value) const {
  const Scale scale = scales_for(size())[static_cast<std::size_t>(plot)];
  return {scale.x(double(point.iteration)), scale.y(value)};
}

std::optional<std::size_t> LearningChart::point_at(QPointF position) const {
  if (!data_.nothing.isEmpty() || data_.points.empty()) return std::nullopt;
  for (const Scale& scale : scales_for(size())) {
    if (!scale.area.adjusted(-4, -4, 4, 4).contains(position)) continue;
    std::size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < data_.points.size(); ++i) {
      const double away = std::abs(scale.x(double(data_.points[i].iteration)) - position.x());
      if (away >= least) continue;
      least = away;
      nearest = i;
    }
    return nearest;
  }
  return std::nullopt;
}

void LearningChart::read(std::optional<std::size_t> point) {
  if (point == read_) return;
  read_ = point;
  update();
}

void LearningChart::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  paint_to(painter, size());
}

void LearningChart::mouseMoveEvent(QMouseEvent* event) {
  const auto point = point_at(event->position());
  read(point);
  if (point)
    QToolTip::showText(event->globalPosition().toPoint(), iteration_text(data_.points[*point]), this);
  else
    QToolTip::hideText();
}

void LearningChart::leaveEvent(QEvent*) { read(std::nullopt); }

void LearningChart::keyPressEvent(QKeyEvent* event) {
  if (data_.points.empty()) return QWidget::keyPressEvent(event);
  const std::size_t last = data_.points.size() - 1, now = read_.value_or(last);
  switch (event->key()) {
    case Qt::Key_Left: read(now > 0 ? now - 1 : 0); break;
    case Qt::Key_Right: read(std::min(last, now + 1)); break;
    case Qt::Key_Home: read(0); break;
    case Qt::Key_End: read(last); break;
    case Qt::Key_Escape:
      read(std::nullopt);
      QToolTip::hideText();
      return;
    default: return QWidget::keyPressEvent(event);
  }
  QToolTip::showText(mapToGlobal(plot_area(Plot::reward).center().toPoint()), iteration_text(data_.points[*read_]),
                     this);
}

}  // namespace turnpoint::views
