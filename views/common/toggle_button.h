// SPDX-License-Identifier: Apache-2.0
// A tool button of a checkable action whose checked state is plain in both themes: accent border on accent background.
#pragma once

#include <QToolButton>

namespace turnpoint::views {

class ToggleButton : public QToolButton {
  Q_OBJECT
 public:
  using QToolButton::QToolButton;
  QSize sizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace turnpoint::views
