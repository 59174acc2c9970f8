// SPDX-License-Identifier: Apache-2.0
// A tool button that fits a picture into its window: four corners around a frame, painted so that no icon file is
// needed.
#pragma once

#include <QPainter>
#include <QToolButton>

namespace turnpoint::views {

class FitButton : public QToolButton {
 public:
  using QToolButton::QToolButton;

 protected:
  void paintEvent(QPaintEvent* event) override {
    QToolButton::paintEvent(event);
    QPainter painter(this);
    painter.setPen(
        QPen(palette().color(isEnabled() ? QPalette::Active : QPalette::Disabled, QPalette::ButtonText), 1.4));
    const QRectF box = QRectF(QRectF(rect()).center() - QPointF(5.5, 5.5), QSizeF(11, 11));
    for (const bool right : {false, true})
      for (const bool low : {false, true}) {
        const QPointF corner(right ? box.right() : box.left(), low ? box.bottom() : box.top());
        painter.drawLine(corner, corner + QPointF(right ? -3.5 : 3.5, 0));
        painter.drawLine(corner, corner + QPointF(0, low ? -3.5 : 3.5));
      }
  }
};

}  // namespace turnpoint::views
