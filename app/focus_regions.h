// SPDX-License-Identifier: Apache-2.0
// Where the keyboard goes: what lies behind a tab takes no focus, Tab follows the regions of the window as they are read,
// and F6 jumps between them.
#pragma once

#include <QHash>
#include <QObject>
#include <QPointer>
#include <vector>

class QDockWidget;
class QMainWindow;
class QWidget;

namespace turnpoint::app {

class FocusRegions : public QObject {
  Q_OBJECT
 public:
  explicit FocusRegions(QMainWindow* window);

  /// Contents and title of a dock are hidden while another tab lies above it: Qt only moves them out of sight, where the
  /// keyboard and screen readers still find them.
  void watch(QDockWidget* dock);
  /// Every widget that Tab stops at now, in order.
  std::vector<QWidget*> stops() const;
  /// Moves the focus to the next (or previous) stop. False: there is none.
  bool step(bool forward);
  /// Moves the focus to the next (or previous) region, to where it was there last.
  void jump(bool forward);

 private:
  int region_of(const QWidget* widget) const;

  QMainWindow* window_;
  QHash<int, QPointer<QWidget>> last_;  ///< by region
};

}  // namespace turnpoint::app
