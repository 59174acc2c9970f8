// SPDX-License-Identifier: Apache-2.0
#include "views/common/section_head.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <algorithm>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

QFont secondary_font(const QFont& base) {
  QFont font = base;
  if (base.pointSizeF() > 0)
    font.setPointSizeF(base.pointSizeF() * 0.92);
  else
    font.setPixelSize(static_cast<int>(base.pixelSize() * 0.92 + 0.5));
  return font;
}

SectionHead::SectionHead(const QString& title, QWidget* parent) : QWidget(parent), title_(title) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName(title);
}

void SectionHead::set_title(const QString& title) {
  title_ = title;
  setAccessibleName(title);
  update();
}

void SectionHead::set_value(const QString& value) {
  if (value == value_) return;
  value_ = value;
  setAccessibleDescription(value);
  update();
}

void SectionHead::set_link(const QString& text, bool enabled) {
  value_ = text;
  link_ = true;
  link_enabled_ = enabled;
  setAccessibleDescription(text);
  setFocusPolicy(enabled ? Qt::TabFocus : Qt::NoFocus);
  setMouseTracking(true);
  update();
}

QSize SectionHead::sizeHint() const { return {160, fontMetrics().height() + 6}; }
QSize SectionHead::minimumSizeHint() const { return {80, sizeHint().height()}; }

QRect SectionHead::value_rect() const {
  const QFontMetrics metrics(secondary_font(font()));
  const int wide = metrics.horizontalAdvance(value_);
  return {width() - wide, 0, wide, height()};
}

void SectionHead::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  QFont head = secondary_font(font());
  head.setBold(true);
  head.setCapitalization(QFont::AllUppercase);
  painter.setFont(head);
  painter.setPen(colors.secondary);
  const QFontMetrics metrics(head);
  const int room = width() - (value_.isEmpty() ? 0 : value_rect().width() + 8);
  const QString title = metrics.elidedText(title_.toUpper(), Qt::ElideRight, std::max(0, room));
  painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter, title);
  int left = metrics.horizontalAdvance(title) + 8;
  int right = width();
  if (!value_.isEmpty()) {
    const QRect area = value_rect();
    painter.setFont(secondary_font(font()));
    painter.setPen(link_ ? (link_enabled_ ? colors.accent : colors.disabled) : colors.secondary);
    painter.drawText(area, Qt::AlignRight | Qt::AlignVCenter, value_);
    right = area.left() - 8;
    if (hasFocus()) {
      painter.setPen(QPen(colors.accent, 1, Qt::DotLine));
      painter.drawRect(area.adjusted(-2, 1, -1, -2));
    }
  }
  painter.setPen(colors.border);
  if (right > left) painter.drawLine(left, height() / 2, right, height() / 2);
}

void SectionHead::mouseMoveEvent(QMouseEvent* event) {
  setCursor(link_ && link_enabled_ && value_rect().contains(event->pos()) ? Qt::PointingHandCursor : Qt::ArrowCursor);
}

void SectionHead::mouseReleaseEvent(QMouseEvent* event) {
  if (link_ && link_enabled_ && value_rect().contains(event->pos())) emit clicked();
}

void SectionHead::keyPressEvent(QKeyEvent* event) {
  if (link_ && link_enabled_ && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Space))
    emit clicked();
  else
    QWidget::keyPressEvent(event);
}

}  // namespace turnpoint::views
