// SPDX-License-Identifier: Apache-2.0
#include "views/common/toggle_button.h"

#include <QPainter>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

QSize ToggleButton::sizeHint() const {
  const QFontMetrics metrics(secondary_font(font()));
  return {metrics.horizontalAdvance(text()) + 18, metrics.height() + 8};
}

void ToggleButton::paintEvent(QPaintEvent*) {
  const ThemeColors& colors = theme_colors(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  const bool on = isChecked() && isEnabled();
  painter.setPen(QPen(on || hasFocus() ? colors.accent : colors.border, hasFocus() ? 1.6 : 1));
  painter.setBrush(on ? colors.accent_background : isDown() || underMouse() ? colors.head : colors.base);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
  painter.setFont(secondary_font(font()));
  painter.setPen(isEnabled() ? colors.text : colors.disabled);
  painter.drawText(rect(), Qt::AlignCenter, text());
}

}  // namespace turnpoint::views
