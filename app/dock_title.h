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
};

}  // namespace turnpoint::app
