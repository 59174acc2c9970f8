// SPDX-License-Identifier: Apache-2.0
#include "app/focus_regions.h"

#include <QApplication>
#include <QDockWidget>
#include <QMainWindow>
#include <QStatusBar>
#include <QTabBar>
#include <QToolBar>
#include <algorithm>

#include "views/common/message_bar.h"

namespace turnpoint::app {

namespace {

/// As they are read. A tab bar comes right before the docks that it switches.
enum Region { kTools, kMessages, kLeftTabs, kLeft, kChart, kViewTabs, kViews, kRightTabs, kRight, kStatus, kElsewhere };

Region region_of_area(Qt::DockWidgetArea area) {
  return area == Qt::LeftDockWidgetArea ? kLeft : area == Qt::RightDockWidgetArea ? kRight : kViews;
}

Region region_of_tabs(const QMainWindow& window, const QTabBar& tabs) {
  const QString title = tabs.currentIndex() >= 0 ? tabs.tabText(tabs.currentIndex()) : QString();
  for (QDockWidget* dock : window.findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly))
    if (dock->windowTitle() == title) return Region(region_of_area(window.dockWidgetArea(dock)) - 1);
  return kViewTabs;
}

bool is_stop(const QWidget* widget, const QWidget* window) {
  return (widget->focusPolicy() & Qt::TabFocus) == Qt::TabFocus && !widget->focusProxy() && widget->isEnabled() &&
         widget->window() == window && widget->isVisible();
}

}  // namespace

FocusRegions::FocusRegions(QMainWindow* window) : QObject(window), window_(window) {
  connect(qApp, &QApplication::focusChanged, this, [this](QWidget*, QWidget* now) {
    if (now && now->window() == window_) last_[region_of(now)] = now;
  });
}

void FocusRegions::watch(QDockWidget* dock) {
  connect(dock, &QDockWidget::visibilityChanged, this, [dock](bool visible) {
    for (QWidget* part : {dock->titleBarWidget(), dock->widget()}) {
      if (!part) continue;
      QSizePolicy policy = part->sizePolicy();
      policy.setRetainSizeWhenHidden(true);  // the window's least size must not hang on which tab is on top
      part->setSizePolicy(policy);
      part->setVisible(visible);
    }
  });
}

int FocusRegions::region_of(const QWidget* widget) const {
  for (const QWidget* at = widget; at && at != window_; at = at->parentWidget()) {
    if (qobject_cast<const QToolBar*>(at) && at->parentWidget() == window_) return kTools;
    if (qobject_cast<const views::MessageBar*>(at)) return kMessages;
    if (at == window_->centralWidget()) return kChart;
    if (qobject_cast<const QStatusBar*>(at)) return kStatus;
    if (const auto* tabs = qobject_cast<const QTabBar*>(at); tabs && at->parentWidget() == window_)
      return region_of_tabs(*window_, *tabs);
    if (const auto* dock = qobject_cast<const QDockWidget*>(at))
      return region_of_area(window_->dockWidgetArea(const_cast<QDockWidget*>(dock)));
  }
  return kElsewhere;
}

std::vector<QWidget*> FocusRegions::stops() const {
  std::vector<std::pair<int, QWidget*>> found;
  for (QWidget* at = window_->nextInFocusChain(); at && at != window_; at = at->nextInFocusChain())
    if (is_stop(at, window_)) found.emplace_back(region_of(at), at);
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<QWidget*> stops;
  for (const auto& each : found) stops.push_back(each.second);
  return stops;
}

bool FocusRegions::step(bool forward) {
  const std::vector<QWidget*> all = stops();
  if (all.empty()) return false;
  QWidget* now = window_->focusWidget();
  const auto at = std::find(all.begin(), all.end(), now);
  const std::size_t size = all.size(), index = std::size_t(at - all.begin());
  std::size_t next = forward ? 0 : size - 1;
  if (at != all.end()) next = forward ? (index + 1) % size : (index + size - 1) % size;
  all[next]->setFocus(forward ? Qt::TabFocusReason : Qt::BacktabFocusReason);
  return true;
}

void FocusRegions::jump(bool forward) {
  const std::vector<QWidget*> all = stops();
  std::vector<int> regions;
  for (QWidget* stop : all)
    if (const int region = region_of(stop); regions.empty() || regions.back() != region) regions.push_back(region);
  if (regions.empty()) return;
  const QWidget* now = window_->focusWidget();
  const auto at = now ? std::find(regions.begin(), regions.end(), region_of(now)) : regions.end();
  const std::size_t size = regions.size(), index = std::size_t(at - regions.begin());
  std::size_t next = forward ? 0 : size - 1;
  if (at != regions.end()) next = forward ? (index + 1) % size : (index + size - 1) % size;
  const int region = regions[next];
  QWidget* to = last_.value(region);
  if (!to || std::find(all.begin(), all.end(), to) == all.end())
    to = *std::find_if(all.begin(), all.end(), [&](const QWidget* stop) { return region_of(stop) == region; });
  to->setFocus(forward ? Qt::TabFocusReason : Qt::BacktabFocusReason);
}

}  // namespace turnpoint::app
