// SPDX-License-Identifier: Apache-2.0
#include "views/validation/validation_scatter.h"

#include <QHelpEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>
#include <QToolTip>
#include <algorithm>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

constexpr double kDot = 3.4, kRing = 6.5, kNear = 12, kMargin = 0.08;
constexpr int kTickRoom = 56;

/// 1, 2 or 5 times a power of ten, so that at most `count` steps fill `range`.
double nice_step(double range, int count) {
  const double rough = range / std::max(1, count);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (power * factor >= rough * (1 - 1e-9)) return power * factor;
  return power * 10;
}

}  // namespace

ValidationScatter::ValidationScatter(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("validation_scatter"));
  setAccessibleName(tr("Predicted against measured step time"));
  setMouseTracking(true);
  setMinimumSize(180, 120);
}

void ValidationScatter::set_reports(std::vector<ValidationReportPtr> reports, int current) {
  reports_ = std::move(reports);
  current_ = current;
  dots_.clear();
  double least = 0, most = 0;
  for (std::size_t i = 0; i < reports_.size(); ++i) {
    const ComparedValue& step = reports_[i]->step;
    if (!step.measured || !(step.predicted > 0) || !(*step.measured > 0)) continue;
    dots_.push_back({static_cast<int>(i), step.predicted, *step.measured, step.q1, step.q3});
    const double low = std::min(step.predicted, *step.measured),
                 high = std::max({step.predicted, *step.measured, step.q3});
    least = least == 0 ? low : std::min(least, low);
    most = std::max(most, high);
  }
  // From zero unless all lie far from it, where they would all be one dot.
  least_ = least > 0.6 * most ? std::max(0.0, least - 0.5 * (most - least) - 0.02 * most) : 0;
  most_ = most > 0 ? most + kMargin * (most - least_) : 1;
  setAccessibleDescription(describe());
  update();
}

QRectF ValidationScatter::axes() const {
  const QFontMetrics metrics(secondary_font(font()));
  const double left = metrics.horizontalAdvance(QStringLiteral("0 000.0")) + 14, bottom = 2 * metrics.height() + 12;
  return QRectF(rect()).adjusted(left, metrics.height() + 10, -16, -bottom);
}

QPointF ValidationScatter::place(double predicted, double measured) const {
  const QRectF area = axes();
  const double range = most_ - least_;
  return {area.left() + area.width() * (predicted - least_) / range,
          area.bottom() - area.height() * (measured - least_) / range};
}

QPointF ValidationScatter::position_of(int dot) const {
  const Dot& at = dots_[static_cast<std::size_t>(dot)];
  return place(at.predicted, at.measured);
}

int ValidationScatter::dot_at(QPointF position) const {
  int nearest = -1;
  double least = kNear;
  for (int i = 0; i < dots(); ++i) {
    const QPointF away = position_of(i) - position;
    const double distance = std::hypot(away.x(), away.y());
    if (distance < least) least = distance, nearest = i;
  }
  return nearest;
}

QString ValidationScatter::tool_tip(int dot) const {
  const ValidationReport& report = *reports_[static_cast<std::size_t>(dots_[static_cast<std::size_t>(dot)].report)];
  return tr("%1\npredicted %2, measured %3\nprediction %4")
      .arg(to_qt(report.plan), time_text(report.step.predicted), time_text(*report.step.measured),
           error_text(report.step, false));
}

void ValidationScatter::paint_axes(QPainter& painter) const {
  const ThemeColors& colors = theme_colors(palette());
  const QRectF area = axes();
  painter.setFont(secondary_font(font()));
  const QFontMetrics metrics = painter.fontMetrics();
  const TimeUnit unit = time_unit_for(most_);
  const double range = (most_ - least_) * unit.per_second;
  const auto ticks = [&](double pixels, double room) { return nice_step(range, std::max(1, int(pixels / room))); };
  const auto label = [](double value, double step) {
    return grouped_number(value, step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  };
  const auto each = [&](double step, auto draw) {
    for (double at = std::ceil(least_ * unit.per_second / step - 1e-9) * step;
         at <= most_ * unit.per_second * (1 + 1e-9); at += step)
      draw(at, label(at, step));
  };
  each(ticks(area.width(), kTickRoom + 8), [&](double at, const QString& text) {
    const double x = place(at / unit.per_second, 0).x();
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(x - 60, area.bottom() + 4, 120, metrics.height()), Qt::AlignHCenter | Qt::AlignTop, text);
  });
  each(ticks(area.height(), metrics.height() + 14), [&](double at, const QString& text) {
    const double y = place(0, at / unit.per_second).y();
    painter.setPen(colors.grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(colors.secondary);
    painter.drawText(QRectF(0, y - metrics.height() / 2.0, area.left() - 6, metrics.height()),
                     Qt::AlignRight | Qt::AlignVCenter, text);
  });
  painter.setPen(colors.axis);
  painter.drawLine(area.topLeft(), area.bottomLeft());
  painter.drawLine(area.bottomLeft(), area.bottomRight());
  painter.setPen(colors.secondary);
  painter.drawText(QRectF(8, 2, width() - 16, metrics.height() + 4), Qt::AlignLeft | Qt::AlignVCenter,
                   tr("measured step (%1)").arg(unit.name));
  painter.drawText(QRectF(area.left(), area.bottom() + 6 + metrics.height(), area.width(), metrics.height()),
                   Qt::AlignRight | Qt::AlignVCenter, tr("predicted step (%1)").arg(unit.name));
}

void ValidationScatter::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  painter.fillRect(rect(), colors.base);
  if (dots_.empty()) {
    painter.setPen(colors.secondary);
    painter.drawText(rect().adjusted(24, 8, -24, -8), Qt::AlignCenter | Qt::TextWordWrap,
                     tr("No report has a measured step."));
    return;
  }
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF area = axes();
  painter.save();
  painter.setClipRect(area);
  QPainterPath band(place(least_, least_ * (1 - kBand)));
  band.lineTo(place(most_, most_ * (1 - kBand)));
  band.lineTo(place(most_, most_ * (1 + kBand)));
  band.lineTo(place(least_, least_ * (1 + kBand)));
  band.closeSubpath();
  painter.fillPath(band, colors.no_fit_area);
  painter.restore();
  paint_axes(painter);
  painter.save();
  painter.setClipRect(area.adjusted(-kRing, -kRing, kRing, kRing));
  painter.setPen(QPen(colors.axis, 1.2, Qt::DashLine));
  painter.drawLine(place(least_, least_), place(most_, most_));
  for (const Dot& dot : dots_) {
    const QPointF at = place(dot.predicted, dot.measured);
    const bool outside = std::abs(dot.measured - dot.predicted) > kBand * dot.predicted;
    const QColor color = outside ? colors.warning : colors.accent;
    if (dot.q3 > dot.q1) {
      painter.setPen(QPen(color, 1));
      painter.drawLine(place(dot.predicted, std::min(dot.q1, dot.measured)), place(dot.predicted, dot.q3));
    }
    painter.setPen(QPen(color, 1.6));
    painter.setBrush(outside ? colors.base : color);
    painter.drawEllipse(at, kDot, kDot);
    if (dot.report == current_) {
      painter.setPen(QPen(colors.accent, 1.4));
      painter.setBrush(Qt::NoBrush);
      painter.drawEllipse(at, kRing, kRing);
    }
  }
  painter.restore();
}

void ValidationScatter::mousePressEvent(QMouseEvent* event) {
  const int dot = event->button() == Qt::LeftButton ? dot_at(event->position()) : -1;
  if (dot >= 0) emit picked(dots_[static_cast<std::size_t>(dot)].report);
}

bool ValidationScatter::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    auto* help = static_cast<QHelpEvent*>(event);
    const int dot = dot_at(help->pos());
    if (dot >= 0)
      QToolTip::showText(help->globalPos(), tool_tip(dot), this);
    else
      QToolTip::hideText();
    return true;
  }
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) update();
  return QWidget::event(event);
}

QString ValidationScatter::describe() const {
  const auto outside = std::count_if(dots_.begin(), dots_.end(), [](const Dot& dot) {
    return std::abs(dot.measured - dot.predicted) > kBand * dot.predicted;
  });
  return tr("%1, of which %2 off by more than 10%").arg(counted(dots(), tr("1 plan"), tr("%1 plans"))).arg(outside);
}

}  // namespace turnpoint::views
