// SPDX-License-Identifier: Apache-2.0
// Where the docks stand: at first, in a narrow window, as they were left.
#include <QDockWidget>
#include <QResizeEvent>
#include <QTabBar>
#include <QTimer>
#include <algorithm>

#include "app/app_settings.h"
#include "app/main_window.h"

namespace turnpoint::app {

namespace {
constexpr int kLeftDock = 288, kRightDock = 316;
constexpr int kTall = 900;  ///< from this height on the views below the chart get nearly half of it
}  // namespace

void MainWindow::default_layout() {
  for (QDockWidget* dock : {scenario_dock_, plan_dock_}) {
    dock->setFloating(false);
    dock->show();
  }
  addDockWidget(Qt::LeftDockWidgetArea, scenario_dock_);
  addDockWidget(Qt::RightDockWidgetArea, plan_dock_);
  // Never side by side, not even for a moment: the window would grow to hold them all and stay so.
  for (QDockWidget* dock : view_docks_) {
    dock->setFloating(false);
    removeDockWidget(dock);
  }
  for (std::size_t i = 0; i < view_docks_.size(); ++i) {
    if (i == 0)
      addDockWidget(Qt::BottomDockWidgetArea, view_docks_[i]);
    else
      tabifyDockWidget(view_docks_[0], view_docks_[i]);
    view_docks_[i]->show();
  }
  resizeDocks({scenario_dock_, plan_dock_}, {kLeftDock, kRightDock}, Qt::Horizontal);
  if (!view_docks_.empty()) {
    view_docks_[0]->raise();
    // Of a low window the chart keeps what it needs to be read.
    const int share = height() >= kTall ? 45 : 38;
    resizeDocks({view_docks_[0]}, {(height() - 90) * share / 100}, Qt::Vertical);
  }
  fit_docks();
}

void MainWindow::set_most_width(int width) {
  most_width_ = width;
  fit_docks();
}

void MainWindow::fit_docks() {
  if (!scenario_dock_ || !plan_dock_) return;
  const int room = most_width_ > 0 ? std::min(most_width_, width()) : width();
  if (!folded_) {
    const int needed = minimumSizeHint().width();
    if (needed <= room) return;
    const bool both = !scenario_dock_->isHidden() && !plan_dock_->isHidden() && !scenario_dock_->isFloating() &&
                      !plan_dock_->isFloating() && dockWidgetArea(scenario_dock_) != dockWidgetArea(plan_dock_);
    if (!both) return;
    unfolded_state_ = saveState();
    unfolded_width_ = needed;
    folded_ = true;
    // What stands on both sides of the chart elsewhere shares one side.
    tabifyDockWidget(scenario_dock_, plan_dock_);
    scenario_dock_->raise();
    resizeDocks({scenario_dock_}, {kLeftDock}, Qt::Horizontal);
    name_tab_bars();
    return;
  }
  constexpr int kSlack = 24;  // not at the same width as before, or a border that is dragged would flicker
  if (room < unfolded_width_ + kSlack) return;
  folded_ = false;
  if (!tabifiedDockWidgets(scenario_dock_).contains(plan_dock_)) return;  // the user has put it elsewhere meanwhile
  addDockWidget(Qt::RightDockWidgetArea, plan_dock_);
  resizeDocks({scenario_dock_, plan_dock_}, {kLeftDock, kRightDock}, Qt::Horizontal);
}

QByteArray MainWindow::layout_state() const { return folded_ ? unfolded_state_ : saveState(); }

void MainWindow::restore_layout(const QByteArray& state) {
  folded_ = false;
  if (!restoreState(state)) default_layout();
  fit_docks();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  if (!first_show_) fit_docks();
}

void MainWindow::name_tab_bars() {
  QTimer::singleShot(0, this, [this] {
    for (QTabBar* tabs : findChildren<QTabBar*>()) {
      if (!tabs->accessibleName().isEmpty()) continue;
      tabs->setAccessibleName(tr("Views of the picked plan"));
      // In a narrow window whole names that scroll say more than nine cut ones.
      tabs->setElideMode(Qt::ElideNone);
      tabs->setUsesScrollButtons(true);
    }
  });
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  if (!first_show_) return;
  // Docks take their sizes only once the window has its own; their tab bars appear with the first layout.
  if (settings_.layout().isEmpty() || !restoreState(settings_.layout())) default_layout();
  fit_docks();
  first_show_ = false;
  name_tab_bars();
}

}  // namespace turnpoint::app
