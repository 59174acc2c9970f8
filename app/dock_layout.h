// SPDX-License-Identifier: Apache-2.0
// Where the docks stand: at first, in a narrow window, as they were left.
#pragma once

#include <QByteArray>
#include <QObject>
#include <vector>

class QDockWidget;
class QMainWindow;

namespace turnpoint::app {

class DockLayout : public QObject {
 public:
  DockLayout(QMainWindow& window, QDockWidget* scenario, QDockWidget* plan);
  void add(QDockWidget* view);  ///< below the chart
  const std::vector<QDockWidget*>& views() const { return views_; }

  void reset();
  QByteArray state() const;  ///< as it is where there is room
  void restore(const QByteArray& state);
  void raise(const QString& key);
  /// The window is to need no more than this: docks share one side where the screen is too narrow for both. 0: any.
  void set_most_width(int width);
  void window_resized();
  void window_shown(const QByteArray& kept);  ///< as the window was left; may be empty

 private:
  /// Scenario and plan share one side while the window is too narrow for both, and part again when it is not.
  void fit();
  void name_tab_bars();

  QMainWindow& window_;
  QDockWidget *scenario_, *plan_;
  std::vector<QDockWidget*> views_;
  bool first_show_ = true, folded_ = false;
  QByteArray unfolded_state_;
  int most_width_ = 0, unfolded_width_ = 0;
};

}  // namespace turnpoint::app
