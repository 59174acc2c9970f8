// SPDX-License-Identifier: Apache-2.0
// A label in the secondary size and colour, following the palette.
#pragma once

#include <QEvent>
#include <QLabel>

#include "views/common/section_head.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {

class NoteLabel : public QLabel {
 public:
  explicit NoteLabel(QWidget* parent = nullptr) : NoteLabel(QString(), parent) {}
  explicit NoteLabel(const QString& text, QWidget* parent = nullptr) : QLabel(parent) {
    setText(text);
    setTextFormat(Qt::PlainText);
    setFont(secondary_font(font()));
    recolour();
  }

 protected:
  void changeEvent(QEvent* event) override {
    QLabel::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) recolour();
  }

 private:
  void recolour() {
    const QColor wanted = theme_colors(palette()).secondary;
    if (palette().color(QPalette::WindowText) == wanted) return;  // setting it sends a change again
    QPalette tinted = palette();
    tinted.setColor(QPalette::Active, QPalette::WindowText, wanted);
    tinted.setColor(QPalette::Inactive, QPalette::WindowText, wanted);
    setPalette(tinted);
  }
};

}  // namespace turnpoint::views
