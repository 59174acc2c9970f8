// SPDX-License-Identifier: Apache-2.0
// Check boxes that can be seen on dark ground: the style's own outline there is darker than the ground.
#pragma once

#include <QCheckBox>
#include <QPainter>
#include <QStyleOptionButton>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

/// Around an indicator that the style has just painted; on light ground nothing is to be added.
inline void outline_indicator(QPainter& painter, const QRect& indicator, const ThemeColors& colors) {
  if (!colors.dark) return;
  painter.save();
  painter.setRenderHint(QPainter::Antialiasing, false);
  painter.setPen(colors.axis);
  painter.setBrush(Qt::NoBrush);
  painter.drawRect(indicator.adjusted(0, 0, -1, -1));
  painter.restore();
}

class OutlinedCheckBox : public QCheckBox {
 public:
  using QCheckBox::QCheckBox;

 protected:
  void paintEvent(QPaintEvent* event) override {
    QCheckBox::paintEvent(event);
    QStyleOptionButton option;
    initStyleOption(&option);
    QPainter painter(this);
    outline_indicator(painter, style()->subElementRect(QStyle::SE_CheckBoxIndicator, &option, this),
                      theme_colors(palette()));
  }
};

}  // namespace turnpoint::views
