// SPDX-License-Identifier: Apache-2.0
// One line, of the same height with and without words, that gives way where there is no room and says so by three dots;
// the whole text is its tool tip.
#pragma once

#include <QLabel>
#include <QPainter>
#include <algorithm>

#include "views/common/note_label.h"

namespace turnpoint::views {

template <class Label>
class Elided : public Label {
 public:
  explicit Elided(QWidget* parent = nullptr) : Label(parent) {
    this->setTextFormat(Qt::PlainText);
    this->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    this->setForegroundRole(QPalette::WindowText);  // on a panel of the base colour it would be Text
  }

  QSize sizeHint() const override {
    const QSize hint = Label::sizeHint();
    return {hint.width(), std::max(hint.height(), this->fontMetrics().height())};
  }

 protected:
  static constexpr int kLeast = 4;
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    painter.setPen(this->palette().color(QPalette::WindowText));
    const QString shown = this->fontMetrics().elidedText(this->text(), Qt::ElideRight, this->width());
    // One letter and three dots tell nothing.
    if (shown == this->text() || shown.size() > kLeast)
      painter.drawText(this->rect(), Qt::AlignLeft | Qt::AlignVCenter, shown);
  }
};

}  // namespace turnpoint::views
