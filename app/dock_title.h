// SPDX-License-Identifier: Apache-2.0
// A dock's title bar that is the view's own tool bar, with float and close at its right end.
#pragma once

#include <QWidget>

class QDockWidget;

namespace turnpoint::app {

class DockTitle : public QWidget {
  Q_OBJECT
 public:
  DockTitle(QWidget* tool_bar, QDockWidget* dock);

  /// Narrower than its tool bar would like: boxes and words give way before a narrow window is held open.
  QSize minimumSizeHint() const override;
  static constexpr int kLeastWidth = 400;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* tool_bar_;
};

}  // namespace turnpoint::app
