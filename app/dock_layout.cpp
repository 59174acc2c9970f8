// SPDX-License-Identifier: Apache-2.0
#include "app/dock_layout.h"

#include <QDockWidget>
#include <QMainWindow>
#include <QTabBar>
#include <QTimer>
#include <algorithm>

namespace turnpoint::app {

namespace {
constexpr int kLeftDock = 288, kRightDock = 316;
constexpr int kTall = 900;  ///< from this height on the views below the chart get nearly half of it
}  // namespace

DockLayout::DockLayout(QMainWindow& window, QDockWidget* scenario, QDockWidget* plan)
    : QObject(&window), window_(window), scenario_(scenario), plan_(plan) {}

void DockLayout::add(QDockWidget* view) { views_.push_back(view); }

void DockLayout::reset() {
  for (QDockWidget* dock : {scenario_, plan_}) {
    dock->setFloating(false);
    dock->show();
  }
  window_.addDockWidget(Qt::LeftDockWidgetArea, scenario_);
  window_.addDockWidget(Qt::RightDockWidgetArea, plan_);
  // Never side by side, not even for a moment: the window would grow to hold them all and stay so.
  for (QDockWidget* dock : views_) {
    dock->setFloating(false);
    window_.removeDockWidget(dock);
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (i == 0)
      window_.addDockWidget(Qt::BottomDockWidgetArea, views_[i]);
    else
      window_.tabifyDockWidget(views_[0], views_[i]);
    views_[i]->show();
  }
  window_.resizeDocks({scenario_, plan_}, {kLeftDock, kRightDock}, Qt::Horizontal);
  if (!views_.empty()) {
    views_[0]->raise();
    // Of a low window the chart keeps what it needs to be read.
    const int share = window_.height() >= kTall ? 45 : 38;
    window_.resizeDocks({views_[0]}, {(window_.height() - 90) * share / 100}, Qt::Vertical);
  }
  fit();
}

void DockLayout::set_most_width(int width) {
  most_width_ = width;
  fit();
}

void DockLayout::fit() {
  if (!scenario_ || !plan_) return;
  const int room = most_width_ > 0 ? std::min(most_width_, window_.width()) : window_.width();
  if (!folded_) {
    const int needed = window_.minimumSizeHint().width();
    if (needed <= room) return;
    const bool both = !scenario_->isHidden() && !plan_->isHidden() && !scenario_->isFloating() &&
                      !plan_->isFloating() && window_.dockWidgetArea(scenario_) != window_.dockWidgetArea(plan_);
    if (!both) return;
    unfolded_state_ = window_.saveState();
    unfolded_width_ = needed;
    folded_ = true;
    // What stands on both sides of the chart elsewhere shares one side.
    window_.tabifyDockWidget(scenario_, plan_);
    scenario_->raise();
    window_.resizeDocks({scenario_}, {kLeftDock}, Qt::Horizontal);
    name_tab_bars();
    return;
  }
  constexpr int kSlack = 24;  // not at the same width as before, or a border that is dragged would flicker
  if (room < unfolded_width_ + kSlack) return;
  folded_ = false;
  if (!window_.tabifiedDockWidgets(scenario_).contains(plan_)) return;  // the user has put it elsewhere meanwhile
  window_.addDockWidget(Qt::RightDockWidgetArea, plan_);
  window_.resizeDocks({scenario_, plan_}, {kLeftDock, kRightDock}, Qt::Horizontal);
}

QByteArray DockLayout::state() const { return folded_ ? unfolded_state_ : window_.saveState(); }

void DockLayout::restore(const QByteArray& state) {
  folded_ = false;
  if (!window_.restoreState(state)) reset();
  fit();
}

void DockLayout::raise(const QString& key) {
  for (QDockWidget* dock : views_) {
    if (dock->objectName() != key) continue;
    dock->show();
    dock->raise();
  }
}

void DockLayout::window_resized() {
  if (!first_show_) fit();
}

void DockLayout::name_tab_bars() {
  QTimer::singleShot(0, this, [this] {
    for (QTabBar* tabs : window_.findChildren<QTabBar*>()) {
      if (!tabs->accessibleName().isEmpty()) continue;
      tabs->setAccessibleName(tr("Views of the picked plan"));
      // In a narrow window whole names that scroll say more than nine cut ones.
      tabs->setElideMode(Qt::ElideNone);
      tabs->setUsesScrollButtons(true);
    }
  });
}

void DockLayout::window_shown(const QByteArray& kept) {
  if (!first_show_) return;
  // Docks take their sizes only once the window has its own; their tab bars appear with the first layout.
  if (kept.isEmpty() || !window_.restoreState(kept)) reset();
  fit();
  first_show_ = false;
  name_tab_bars();
}

}  // namespace turnpoint::app
