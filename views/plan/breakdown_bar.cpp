// SPDX-License-Identifier: Apache-2.0
#include "views/plan/breakdown_bar.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolTip>
#include <algorithm>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

BreakdownBar::BreakdownBar(QWidget* parent) : QWidget(parent) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

QSize BreakdownBar::sizeHint() const { return {200, 18}; }

void BreakdownBar::set_parts(std::vector<BarPart> parts, double scale, const QString& free_text) {
  parts_ = std::move(parts);
  scale_ = scale;
  free_text_ = free_text;
  QStringList words;
  for (const BarPart& part : parts_) words << part.label;
  setAccessibleDescription(words.join(QStringLiteral(", ")));
  update();
}

double BreakdownBar::full() const {
  double sum = 0;
  for (const BarPart& part : parts_) sum += std::max(0.0, part.value);
  return std::max(sum, scale_);
}

void BreakdownBar::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
  painter.fillRect(frame, colors.base);
  const double whole = full();
  double x = 0;
  if (whole > 0) {
    for (const BarPart& part : parts_) {
      const double wide = std::max(0.0, part.value) / whole * width();
      // A hairline of base between neighbours keeps similar tints apart.
      if (wide > 0) painter.fillRect(QRectF(x, 1, wide > 3 ? wide - 1 : wide, height() - 2), part.color);
      x += wide;
    }
  }
  if (!free_text_.isEmpty()) {
    const QFont small = secondary_font(font());
    painter.setFont(small);
    painter.setPen(colors.secondary);
    if (width() - x > QFontMetrics(small).horizontalAdvance(free_text_) + 10)
      painter.drawText(QRectF(x, 0, width() - x - 5, height()), Qt::AlignRight | Qt::AlignVCenter, free_text_);
  }
  if (scale_ > 0 && whole > scale_) {
    painter.setPen(QPen(colors.error, 2));
    const double at = scale_ / whole * width();
    painter.drawLine(QPointF(at, 0), QPointF(at, height()));
  }
  painter.setPen(colors.border);
  painter.drawRect(frame);
}

bool BreakdownBar::event(QEvent* event) {
  if (event->type() == QEvent::ToolTip) {
    const auto* help = static_cast<QHelpEvent*>(event);
    const double whole = full();
    double x = 0;
    for (const BarPart& part : parts_) {
      const double wide = whole > 0 ? part.value / whole * width() : 0;
      if (help->pos().x() >= x && help->pos().x() < x + wide) {
        QToolTip::showText(help->globalPos(), part.label, this);
        return true;
      }
      x += wide;
    }
    QToolTip::hideText();
    return true;
  }
  return QWidget::event(event);
}

}  // namespace turnpoint::views
