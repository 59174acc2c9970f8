// SPDX-License-Identifier: Apache-2.0
#include "app/main_window.h"

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QDragEnterEvent>
#include <QMenu>
#include <QMimeData>
#include <QProcess>
#include <QStackedWidget>
#include <QStatusBar>
#include <QStatusTipEvent>
#include <QVBoxLayout>

#include "app/app_settings.h"
#include "app/batch_offer.h"
#include "app/chart_page.h"
#include "app/command_palette.h"
#include "app/dock_layout.h"
#include "app/dock_title.h"
#include "app/exports.h"
#include "app/focus_regions.h"
#include "app/help_pages.h"
#include "app/manual_window.h"
#include "app/opener.h"
#include "app/plan_page.h"
#include "app/scenario_page.h"
#include "app/sequence_offer.h"
#include "app/sessions.h"
#include "app/start_page.h"
#include "app/status_line.h"
#include "views/common/accessible_roles.h"
#include "views/common/configuration_colors.h"
#include "views/common/format.h"
#include "views/frontier/chart_header.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/time/time_zoom.h"

namespace turnpoint::app {

namespace {
constexpr int kLeastWidth = 640, kLeastHeight = 420;
}

MainWindow::MainWindow(const SearchBackend& backend, AppSettings& settings, QWidget* parent)
    : QMainWindow(parent), settings_(settings), actions_(this), work_(backend) {
  setObjectName(QStringLiteral("main_window"));
  setAcceptDrops(true);
  setDockOptions(AllowTabbedDocks | AllowNestedDocks);
  setTabPosition(Qt::AllDockWidgetAreas, QTabWidget::North);
  setCorner(Qt::BottomLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::TopLeftCorner, Qt::LeftDockWidgetArea);
  setCorner(Qt::BottomRightCorner, Qt::RightDockWidgetArea);
  setCorner(Qt::TopRightCorner, Qt::RightDockWidgetArea);
  views::install_accessible_roles();
  focus_regions_ = new FocusRegions(this);
  build_centre();
  build_docks();
  exports_ = new Exports(work_, actions_, *voice_, *chart_, *plan_panel_, this);
  build_menus();
  build_tool_bar();
  status_line_ = new StatusLine(work_, actions_, voice_->bar(), *chart_->header(), statusBar());
  connect_actions();
  connect_messages();
  chart_->show_results();
  show_recent();
  // Half a screen beside a terminal: narrower than all docks side by side need (app/dock_layout.h).
  setMinimumSize(kLeastWidth, kLeastHeight);
  resize(1600, 1000);
  if (!settings.geometry().isEmpty()) restoreGeometry(settings.geometry());
}

MainWindow::~MainWindow() {
  work_.end_tasks();
  // Views hold the document's selection, so they go before it.
  delete takeCentralWidget();
  qDeleteAll(findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly));
}

void MainWindow::build_centre() {
  centre_ = new QStackedWidget(this);
  chart_ = new ChartPage(work_, actions_, settings_, centre_);
  start_page_ = new StartPage(actions_, centre_);
  start_page_->set_opens_sample(settings_.opens_sample());
  centre_->addWidget(start_page_);
  centre_->addWidget(chart_);
  connect(&work_.document, &Document::scenario_changed, this,
          [this] { centre_->setCurrentIndex(work_.document.scenario() ? 1 : 0); });
  auto* whole = new QWidget(this);
  auto* outer = new QVBoxLayout(whole);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  outer->addWidget(centre_, 1);
  // Over the chart's edge: in a place of its own it would push chart and axes down, and up again when it leaves.
  auto* messages = new views::MessageBar(whole);
  messages->hang_below(chart_->header(), whole);
  connect(messages, &views::MessageBar::covers, start_page_, &StartPage::keep_clear);
  connect(messages, &views::MessageBar::covers, chart_, [this, messages](int height) {
    // A note leaves by itself: nothing moves for it.
    const views::Message* message = messages->current();
    chart_->keep_clear(message && message->kind != views::Message::Kind::note ? height : 0);
  });
  setCentralWidget(whole);
  voice_ = new Voice(settings_, *messages, this);
  palette_ = new CommandPalette(this);
}

QDockWidget* MainWindow::add_dock(const QString& key, const QString& title, QWidget* widget, Qt::DockWidgetArea area,
                                  QDockWidget* behind) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(key);
  dock->setWidget(widget);
  focus_regions_->watch(dock);
  // Never side by side, not even for a moment: their widths together would push the window out.
  if (behind)
    tabifyDockWidget(behind, dock);
  else
    addDockWidget(area, dock);
  return dock;
}

void MainWindow::build_docks() {
  scenario_panel_ = new views::ScenarioPanel(scenario_options(), this);
  plan_panel_ = new views::PlanPanel(this);
  scenario_dock_ = add_dock(QStringLiteral("scenario"), tr("Scenario"), scenario_panel_, Qt::LeftDockWidgetArea);
  plan_dock_ = add_dock(QStringLiteral("plan"), tr("Plan"), plan_panel_, Qt::RightDockWidgetArea);
  connect(plan_dock_, &QDockWidget::visibilityChanged, &work_.schedules, &ScheduleLoader::set_wanted_at_rest);
  docks_ = new DockLayout(*this, scenario_dock_, plan_dock_);
  auto* scenario = new ScenarioPage(work_, actions_, settings_, *chart_, scenario_panel_);
  new PlanPage(work_, *chart_, plan_panel_);
  sessions_ = new Sessions(work_, actions_, settings_, *voice_, *chart_, *docks_, tabs_, *this);
  opener_ = new Opener(work_, actions_, settings_, *voice_, *sessions_, tabs_);
  connect(opener_, &Opener::recent_changed, scenario, &ScenarioPage::fill_choices);
  connect(opener_, &Opener::recent_changed, this, &MainWindow::show_recent);
  connect(sessions_, &Sessions::recent_changed, this, &MainWindow::show_recent);
  tabs_ = make_tabs({work_, actions_, *voice_, *opener_, *chart_, *plan_panel_, this,
                     std::make_shared<views::ConfigurationColors>(), std::make_shared<views::TimeZoom>()});
  for (Tab* tab : tabs_) {
    QDockWidget* dock = add_dock(tab->key(), tab->title(), tab->widget, Qt::BottomDockWidgetArea,
                                 docks_->views().empty() ? nullptr : docks_->views().front());
    docks_->add(dock);
    tab->widget->setMinimumWidth(DockTitle::kLeastWidth);
    dock->setTitleBarWidget(new DockTitle(tab->tool_bar, dock));
    connect(dock, &QDockWidget::visibilityChanged, tab, &Tab::set_looked_at);
    connect(tab, &Tab::raise_requested, docks_, [this, tab] { docks_->raise(tab->key()); });
  }
  docks_->reset();
}

void MainWindow::connect_messages() {
  connect(&work_.runner, &SearchRunner::result_changed, this, [this](const QString& method) {
    if (const MethodRun* run = work_.runner.find(method.toStdString());
        run && run->result && run->state != MethodRun::State::failed)
      voice_->bar().clear_errors(views::to_qt(run->title));
  });
  connect(&work_.runner, &SearchRunner::failed, voice_, &Voice::report);
  connect(&work_.clock, &SimulatedClock::failed, voice_, &Voice::report);
  connect(&work_.tasks, &TaskManager::failed, voice_, &Voice::report);
  new BatchOffer(work_, *voice_);
  new SequenceOffer(work_, actions_, *voice_);
  connect(start_page_, &StartPage::path_chosen, opener_, &Opener::open_path);
  connect(start_page_, &StartPage::sample_chosen, opener_, &Opener::open_sample);
  connect(start_page_, &StartPage::study_chosen, sessions_, &Sessions::open_study);
  connect(start_page_, &StartPage::opens_sample_changed, this, [this](bool on) { settings_.set_opens_sample(on); });
}

void MainWindow::connect_actions() {
  using Id = ActionId;
  const auto on = [this](Id id, auto call) { connect(actions_[id], &QAction::triggered, this, call); };
  on(Id::close_model, [this] { work_.document.close_model(); });
  on(Id::new_window, [this] {
    if (!QProcess::startDetached(QApplication::applicationFilePath(), {}))
      voice_->report(Error{ErrorCode::device, "another window could not be started", {}, {}}, tr("New window"));
  });
  on(Id::quit, [this] { close(); });
  QUndoStack& undo = work_.document.undo_stack();
  on(Id::undo, [&undo] { undo.undo(); });
  on(Id::redo, [&undo] { undo.redo(); });
  const auto show_undo = [this, &undo] {
    actions_[Id::undo]->setEnabled(undo.canUndo());
    actions_[Id::redo]->setEnabled(undo.canRedo());
    actions_[Id::undo]->setText(undo.canUndo() ? tr("Undo %1").arg(undo.undoText()) : tr("Undo"));
    actions_[Id::redo]->setText(undo.canRedo() ? tr("Redo %1").arg(undo.redoText()) : tr("Redo"));
  };
  connect(&undo, &QUndoStack::indexChanged, this, show_undo);
  show_undo();
  const auto show_open = [this] {
    actions_.allow(Id::close_model, work_.document.scenario() ? QString() : tr("Nothing is open."));
  };
  connect(&work_.document, &Document::scenario_changed, this, show_open);
  show_open();
  on(Id::search_all, [this] { work_.runner.search_all(); });
  on(Id::stop_newest, [this] {
    if (const auto task = work_.tasks.newest()) work_.tasks.cancel(task->id);
  });
  on(Id::stop_all, [this] {
    work_.runner.stop_all();
    work_.tasks.cancel_all();
  });
  on(Id::reset_factors, [this] { work_.document.reset_factors(); });
  on(Id::find, [this] { open_palette(); });
  on(Id::next_region, [this] { focus_regions_->jump(true); });
  on(Id::previous_region, [this] { focus_regions_->jump(false); });
  const auto dock_toggle = [this](Id id, QDockWidget* dock) {
    connect(actions_[id], &QAction::triggered, dock, &QDockWidget::setVisible);
    connect(dock, &QDockWidget::visibilityChanged, this,
            [this, id, dock] { actions_[id]->setChecked(!dock->isHidden()); });
  };
  dock_toggle(Id::scenario_dock, scenario_dock_);
  dock_toggle(Id::plan_dock, plan_dock_);
  on(Id::chart_only, [this](bool only) {
    if (only) {
      before_chart_only_ = docks_->state();
      for (QDockWidget* dock : findChildren<QDockWidget*>()) dock->hide();
    } else {
      docks_->restore(before_chart_only_);
    }
  });
  on(Id::reset_layout, [this] { docks_->reset(); });
  on(Id::help, [this] { show_help(this); });
  on(Id::manual, [this] { (new ManualWindow(this))->show(); });
  on(Id::shortcuts, [this] {
    QStringList views;
    for (const Tab* tab : tabs_) views << tab->title();
    show_shortcuts(this, views);
  });
  on(Id::about, [this] { show_about(this); });
}

void MainWindow::show_recent() {
  recent_menu_->clear();
  const QStringList all = settings_.recent_sessions() + settings_.recent_models();
  for (const QString& path : all) recent_menu_->addAction(path, this, [this, path] { opener_->open_path(path); });
  recent_menu_->setEnabled(!all.isEmpty());
  start_page_->set_recent(all);
}

bool MainWindow::event(QEvent* event) {
  if (event->type() == QEvent::StatusTip && status_line_) {
    status_line_->show_tip(static_cast<QStatusTipEvent*>(event)->tip());
    return true;
  }
  return QMainWindow::event(event);
}

bool MainWindow::focusNextPrevChild(bool next) { return focus_regions_->step(next); }

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  if (opener_->open_dropped(*event->mimeData())) event->acceptProposedAction();
}

void MainWindow::showEvent(QShowEvent* event) {
  QMainWindow::showEvent(event);
  docks_->window_shown(settings_.layout());
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  docks_->window_resized();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!sessions_->may_close()) return event->ignore();
  settings_.set_window(saveGeometry(),
                       actions_[ActionId::chart_only]->isChecked() ? before_chart_only_ : docks_->state());
  work_.runner.stop_all();
  work_.tasks.cancel_all();
  sessions_->closed();
  event->accept();
}

}  // namespace turnpoint::app
