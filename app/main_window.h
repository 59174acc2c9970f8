// SPDX-License-Identifier: Apache-2.0
// The window: builds centre, docks, menus and bars round a workspace, and computes nothing itself. What it shows keeps
// itself up to date: ChartPage, ScenarioPage, PlanPage, StatusLine and the tabs (app/tabs).
#pragma once

#include <QMainWindow>
#include <vector>

#include "app/actions.h"
#include "app/tab.h"
#include "app/voice.h"
#include "app/workspace.h"

class QDockWidget;
class QMenu;
class QStackedWidget;

namespace turnpoint::views {
class PlanPanel;
class ScenarioPanel;
}  // namespace turnpoint::views

namespace turnpoint::app {

class AppSettings;
class CommandPalette;
class DockLayout;
class Exports;
class FocusRegions;
class Sessions;
class StartPage;
class StatusLine;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  MainWindow(const SearchBackend& backend, AppSettings& settings, QWidget* parent = nullptr);
  ~MainWindow() override;

  Workspace& work() { return work_; }
  Voice& voice() { return *voice_; }
  Opener& opener() { return *opener_; }
  Sessions& sessions() { return *sessions_; }
  Exports& exports() { return *exports_; }
  DockLayout& docks() { return *docks_; }
  const std::vector<Tab*>& tabs() const { return tabs_; }
  const ActionSet& actions() const { return actions_; }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool focusNextPrevChild(bool next) override;
  bool event(QEvent* event) override;

 private:
  void build_centre();
  void build_docks();
  QDockWidget* add_dock(const QString& key, const QString& title, QWidget* widget, Qt::DockWidgetArea area,
                        QDockWidget* behind = nullptr);
  void connect_actions();
  void connect_messages();
  void show_recent();
  // main_window_bars.cpp
  void build_menus();
  void build_theme_menu(QMenu* menu);
  void build_tool_bar();
  void open_palette();

  AppSettings& settings_;
  ActionSet actions_;  ///< what the workspace says as it ends still finds them
  Workspace work_;
  FocusRegions* focus_regions_ = nullptr;
  QStackedWidget* centre_ = nullptr;
  ChartPage* chart_ = nullptr;
  StartPage* start_page_ = nullptr;
  Voice* voice_ = nullptr;
  CommandPalette* palette_ = nullptr;
  views::ScenarioPanel* scenario_panel_ = nullptr;
  views::PlanPanel* plan_panel_ = nullptr;
  QDockWidget *scenario_dock_ = nullptr, *plan_dock_ = nullptr;
  DockLayout* docks_ = nullptr;
  Sessions* sessions_ = nullptr;
  Opener* opener_ = nullptr;
  std::vector<Tab*> tabs_;
  Exports* exports_ = nullptr;
  StatusLine* status_line_ = nullptr;
  QMenu* recent_menu_ = nullptr;
  QByteArray before_chart_only_;
};

}  // namespace turnpoint::app
