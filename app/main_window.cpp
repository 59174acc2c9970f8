// SPDX-License-Identifier: Apache-2.0
#include "app/main_window.h"

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QProcess>
#include <QStackedWidget>
#include <QStatusTipEvent>
#include <QTimer>
#include <QVBoxLayout>

#include "app/app_settings.h"
#include "app/command_palette.h"
#include "app/dock_title.h"
#include "app/document.h"
#include "app/fit_judge.h"
#include "app/focus_regions.h"
#include "app/graph_tab.h"
#include "app/hardware_page.h"
#include "app/manual_window.h"
#include "app/parallelism_page.h"
#include "app/pick_keeper.h"
#include "app/pinned_searches.h"
#include "app/plan_loader.h"
#include "app/recovery.h"
#include "app/schedule_loader.h"
#include "app/search_runner.h"
#include "app/simulated_clock.h"
#include "app/start_page.h"
#include "app/task_manager.h"
#include "app/task_strip.h"
#include "app/validation_runner.h"
#include "views/common/accessible_roles.h"
#include "views/common/icons.h"
#include "views/common/message_bar.h"
#include "views/common/section_head.h"
#include "views/comparison/comparison_view.h"
#include "views/frontier/chart_header.h"
#include "views/frontier/frontier_chart.h"
#include "views/hardware/hardware_view.h"
#include "views/memory/memory_view.h"
#include "views/notes/notes_view.h"
#include "views/parallelism/parallelism_view.h"
#include "views/plan/plan_panel.h"
#include "views/scenario/scenario_panel.h"
#include "views/timeline/timeline_view.h"

namespace turnpoint::app {

namespace {
constexpr int kTitleEvery_ms = 1000, kLeastWidth = 640, kLeastHeight = 420;
constexpr ActionId kToggles[] = {ActionId::show_parts, ActionId::show_others, ActionId::show_pinned, ActionId::log_time,
                                 ActionId::simulated_clock};

bool is_on_at_first(ActionId id) { return id != ActionId::log_time && id != ActionId::simulated_clock; }
}  // namespace

MainWindow::MainWindow(const SearchBackend& backend, AppSettings& settings, QWidget* parent)
    : QMainWindow(parent),
      backend_(backend),
      settings_(settings),
      actions_(this),
      tasks_(std::make_unique<TaskManager>()),
      document_(std::make_unique<Document>(backend, *tasks_)),
      runner_(std::make_unique<SearchRunner>(backend, *tasks_, *document_)),
      judge_(std::make_unique<FitJudge>(*runner_, *tasks_)),
      keeper_(std::make_unique<PickKeeper>(*runner_, *judge_, document_->selection())),
      loader_(std::make_unique<PlanLoader>(*runner_, *tasks_, document_->selection())),
      schedules_(std::make_unique<ScheduleLoader>(*loader_, *tasks_, document_->selection())),
      clock_(std::make_unique<SimulatedClock>(*runner_, *tasks_)),
      validation_runner_(std::make_unique<ValidationRunner>(*tasks_)) {
  setObjectName(QStringLiteral("main_window"));
  setWindowTitle(QStringLiteral("Turnpoint"));
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
  build_menus();
  build_tool_bar();
  build_status_bar();
  connect_document();
  connect_panels();
  connect_actions();
  connect_validation();
  connect_offers();
  watch_kept_work();
  auto* marker = new QTimer(this);
  marker->start(kTitleEvery_ms);
  connect(marker, &QTimer::timeout, this, &MainWindow::show_title);
  fill_choices();
  show_scenario();
  show_point();
  // Half a screen beside a terminal: narrower than all docks side by side need (fit_docks).
  setMinimumSize(kLeastWidth, kLeastHeight);
  resize(1600, 1000);
  if (!settings.geometry().isEmpty()) restoreGeometry(settings.geometry());
}

MainWindow::~MainWindow() {
  // Workers first: what they post must find nobody half destroyed.
  disconnect(tasks_.get(), nullptr, nullptr, nullptr);
  tasks_.reset();
  // Views hold the document's selection, so they go before it.
  delete takeCentralWidget();
  qDeleteAll(findChildren<QDockWidget*>(Qt::FindDirectChildrenOnly));
}

bool MainWindow::settled() const {
  return runner_->up_to_date() && runner_->settled() && loader_->up_to_date() && schedules_->up_to_date() &&
         clock_->settled() && judge_->settled() && pinned_searches_->settled() && !tasks_->busy() &&
         !document_->building();
}

void MainWindow::build_centre() {
  centre_ = new QStackedWidget(this);
  auto* page = new QWidget(centre_);
  auto* column = new QVBoxLayout(page);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  header_ = new views::ChartHeader(page);
  chart_ = new views::FrontierChart(page);
  chart_->set_selection(&document_->selection());
  column->addWidget(header_);
  column->addWidget(chart_, 1);
  start_page_ = new StartPage(actions_, centre_);
  start_page_->set_opens_sample(settings_.opens_sample());
  centre_->addWidget(start_page_);
  centre_->addWidget(page);
  auto* whole = new QWidget(this);
  auto* outer = new QVBoxLayout(whole);
  outer->setContentsMargins(0, 0, 0, 0);
  outer->setSpacing(0);
  outer->addWidget(centre_, 1);
  // Over the chart's edge: in a place of its own it would push chart and axes down, and up again when it leaves.
  messages_ = new views::MessageBar(whole);
  messages_->hang_below(header_, whole);
  connect(messages_, &views::MessageBar::covers, start_page_, &StartPage::keep_clear);
  setCentralWidget(whole);
  QList<QAction*> toggles;
  for (const ActionId id : kToggles) {
    actions_[id]->setChecked(settings_.shown(actions_[id]->objectName(), is_on_at_first(id)));
    toggles << actions_[id];
  }
  header_->set_actions(actions_[ActionId::fit_chart], toggles);
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
  plan_panel_->set_selection(&document_->selection());
  scenario_dock_ = add_dock(QStringLiteral("scenario"), tr("Scenario"), scenario_panel_, Qt::LeftDockWidgetArea);
  plan_dock_ = add_dock(QStringLiteral("plan"), tr("Plan"), plan_panel_, Qt::RightDockWidgetArea);
  tabs_ = make_linked_views(this, &document_->selection());
  linked_ = std::move(tabs_.list);
  comparison_view_ = new views::ComparisonView(this);
  comparison_view_->set_selection(&document_->selection());
  linked_.push_back(make_comparison_tab(comparison_view_));
  hardware_view_ = new views::HardwareView(this);
  hardware_page_ = new HardwarePage(*tasks_, *document_, hardware_view_, this);
  parallelism_view_ = new views::ParallelismView(this);
  parallelism_page_ = new ParallelismPage(*tasks_, *document_, *runner_, parallelism_view_, this);
  linked_.push_back(make_parallelism_tab(parallelism_view_, parallelism_page_));
  linked_.push_back(make_hardware_tab(hardware_view_));
  build_validation();
  notes_view_ = new views::NotesView(this);
  linked_.push_back(make_notes_tab(notes_view_));
  pinned_searches_ = new PinnedSearches(backend_, *tasks_, *document_, *runner_, this);
  for (std::size_t i = 0; i < linked_.size(); ++i) {
    QDockWidget* dock = add_dock(linked_[i].key, linked_[i].title, linked_[i].widget, Qt::BottomDockWidgetArea,
                                 i > 0 ? view_docks_[0] : nullptr);
    linked_[i].widget->setMinimumWidth(DockTitle::kLeastWidth);
    if (linked_[i].tool_bar) dock->setTitleBarWidget(new DockTitle(linked_[i].tool_bar, dock));
    connect(dock, &QDockWidget::visibilityChanged, this, [this, i](bool visible) {
      if (visible && linked_[i].outdated) show_plan_in(linked_[i]);
    });
    view_docks_.push_back(dock);
  }
  for (QDockWidget* dock : view_docks_) {
    if (dock->widget() == hardware_view_)
      connect(dock, &QDockWidget::visibilityChanged, hardware_page_, &HardwarePage::set_looked_at);
    if (dock->widget() == parallelism_view_)
      connect(dock, &QDockWidget::visibilityChanged, parallelism_page_, &ParallelismPage::set_looked_at);
    if (dock->widget() == tabs_.timeline || dock->widget() == tabs_.memory)
      connect(dock, &QDockWidget::visibilityChanged, schedules_.get(),
              [this, view = dock->widget()](bool visible) { schedules_->set_looked_at(view, visible); });
  }
  connect(plan_dock_, &QDockWidget::visibilityChanged, schedules_.get(), &ScheduleLoader::set_wanted_at_rest);
  default_layout();
}

void MainWindow::connect_document() {
  Document* document = document_.get();
  connect(document, &Document::scenario_changed, this, &MainWindow::show_scenario);
  connect(document, &Document::pinned_changed, this, &MainWindow::show_chart);
  connect(document, &Document::building_changed, this, &MainWindow::show_status);
  connect(document, &Document::failed, this, [this](const Error& error, const QString& action) {
    report_about(error, action, about_opening());
    show_scenario();  // boxes go back to what is open
  });
  connect(document, &Document::built, this, [this] { messages_->clear_errors(about_opening()); });
  connect(runner_.get(), &SearchRunner::result_changed, this, [this](const QString& method) {
    if (const MethodRun* run = runner_->find(method.toStdString());
        run && run->result && run->state != MethodRun::State::failed)
      messages_->clear_errors(views::to_qt(run->title));
    if (runner_->more_follow()) return;
    show_chart();
    show_point();
  });
  connect(runner_.get(), &SearchRunner::runs_changed, this, [this] {
    show_methods();
    show_status();
  });
  connect(runner_.get(), &SearchRunner::failed, this, &MainWindow::report);
  connect(clock_.get(), &SimulatedClock::changed, this, [this] {
    show_chart();
    show_point();
    show_status();
  });
  connect(clock_.get(), &SimulatedClock::failed, this, &MainWindow::report);
  connect(judge_.get(), &FitJudge::judged_changed, this, [this] {
    show_chart();
    show_point();
  });
  connect(tasks_.get(), &TaskManager::failed, this, &MainWindow::report);
  connect(tasks_.get(), &TaskManager::changed, this, [this] {
    show_methods();
    show_status();
  });
  connect(loader_.get(), &PlanLoader::plan_changed, this, &MainWindow::show_plan);
  connect(schedules_.get(), &ScheduleLoader::changed, this, &MainWindow::show_schedule);
  connect(&document->selection(), &views::SelectionModel::point_changed, this, &MainWindow::show_point);
  connect(messages_, &views::MessageBar::count_changed, this, &MainWindow::show_status);
}

void MainWindow::connect_panels() {
  using Panel = views::ScenarioPanel;
  connect(scenario_panel_, &Panel::model_chosen, this,
          [this](const QString& s) { document_->open_model(s.toStdString()); });
  connect(scenario_panel_, &Panel::hardware_chosen, this,
          [this](const QString& s) { document_->open_hardware(s.toStdString()); });
  connect(scenario_panel_, &Panel::open_model_requested, actions_[ActionId::open_model], &QAction::trigger);
  connect(scenario_panel_, &Panel::open_hardware_requested, actions_[ActionId::open_hardware], &QAction::trigger);
  connect(scenario_panel_, &Panel::option_edited, this, [this](const QString& key, double value, quint64 gesture) {
    document_->set_option(key.toStdString(), value, gesture);
  });
  connect(scenario_panel_, &Panel::reset_factors_requested, document_.get(), &Document::reset_factors);
  connect_methods();
  connect(chart_, &views::FrontierChart::memory_limit_dragged, document_.get(), &Document::set_memory_limit);
  using Stride = views::FrontierChart::Stride;
  connect(plan_panel_, &views::PlanPanel::step_requested, chart_,
          [this](int steps, bool every) { chart_->step_pick(steps, every ? Stride::every : Stride::visible); });
  plan_panel_->set_figures([this](std::int64_t bytes) { return chart_->memory_words(bytes); },
                           [this](double seconds) { return chart_->time_words(seconds); });
  connect(chart_, &views::FrontierChart::view_changed, plan_panel_, &views::PlanPanel::refresh_figures);
  connect(hardware_view_, &views::HardwareView::open_logs_requested, actions_[ActionId::open_logs], &QAction::trigger);
  connect(hardware_page_, &HardwarePage::failed, this, &MainWindow::report);
  connect(hardware_page_, &HardwarePage::succeeded, messages_, &views::MessageBar::clear_errors);
  connect(hardware_page_, &HardwarePage::noted, this, &MainWindow::note);
  connect(pinned_searches_, &PinnedSearches::failed, this, &MainWindow::report);
  connect(hardware_page_, &HardwarePage::report_shown, this, &MainWindow::show_hardware_page);
  connect(hardware_page_, &HardwarePage::profile_made, this, &MainWindow::open_profile);
  connect(start_page_, &StartPage::path_chosen, this, &MainWindow::open_path);
  connect(start_page_, &StartPage::sample_chosen, this, &MainWindow::open_sample);
  connect(start_page_, &StartPage::study_chosen, this, &MainWindow::open_study);
  connect(start_page_, &StartPage::opens_sample_changed, this, [this](bool on) { settings_.set_opens_sample(on); });
}

void MainWindow::connect_actions() {
  using Id = ActionId;
  const auto on = [this](Id id, auto call) { connect(actions_[id], &QAction::triggered, this, call); };
  on(Id::open_model, [this] {
    ask_open(tr("Open model"),
             tr("Models and task graphs (*.onnx *.pt2 *.json *.pb *.pbtxt *.graph.txt);;All files (*)"),
             &MainWindow::open_path);
  });
  on(Id::open_hardware, [this] {
    ask_open(tr("Open hardware profile"), tr("Hardware profiles (*.json);;All files (*)"),
             &MainWindow::open_hardware_file);
  });
  on(Id::open_logs, [this] { ask_open_logs(); });
  on(Id::open_session, [this] {
    ask_open(tr("Open session"), tr("Turnpoint sessions (*.turnpoint);;All files (*)"), &MainWindow::open_session);
  });
  on(Id::save_session, [this] {
    if (session_path_.isEmpty()) return ask_save_session();
    save_session(session_path_);
  });
  on(Id::save_session_as, [this] { ask_save_session(); });
  on(Id::close_model, [this] { document_->close_model(); });
  on(Id::new_window, [this] {
    if (!QProcess::startDetached(QApplication::applicationFilePath(), {}))
      report(Error{ErrorCode::device, "another window could not be started", {}, {}}, tr("New window"));
  });
  on(Id::quit, [this] { close(); });
  QUndoStack& undo = document_->undo_stack();
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
  on(Id::copy_point, [this] { chart_->copy_point(); });
  on(Id::search_all, [this] { runner_->search_all(); });
  on(Id::stop_newest, [this] {
    if (const auto task = tasks_->newest()) tasks_->cancel(task->id);
  });
  on(Id::stop_all, [this] {
    runner_->stop_all();
    tasks_->cancel_all();
  });
  on(Id::tasks, [this] { task_strip_->show_list(); });
  on(Id::pin, [this] { pin_frontier(); });
  on(Id::clear_pinned, [this] {
    pinned_searches_->set({});
    document_->clear_pinned();
  });
  on(Id::reset_factors, [this] { document_->reset_factors(); });
  connect_exports();
  on(Id::find, [this] { open_palette(); });
  on(Id::next_region, [this] { focus_regions_->jump(true); });
  on(Id::previous_region, [this] { focus_regions_->jump(false); });
  on(Id::fit_chart, [this] { chart_->fit(); });
  on(Id::zoom_in, [this] { chart_->zoom(1.25); });
  on(Id::zoom_out, [this] { chart_->zoom(0.8); });
  on(Id::previous_plan, [this] { chart_->step_pick(-1); });
  on(Id::next_plan, [this] { chart_->step_pick(1); });
  on(Id::previous_point, [this] { chart_->step_pick(-1, views::FrontierChart::Stride::every); });
  on(Id::next_point, [this] { chart_->step_pick(1, views::FrontierChart::Stride::every); });
  on(Id::least_memory, [this] { chart_->pick_first(); });
  on(Id::least_time, [this] { chart_->pick_last(); });
  on(Id::turning_point, [this] { chart_->pick_turning_point(); });
  const auto toggle = [this](Id id, auto setter) {
    connect(actions_[id], &QAction::toggled, this, [this, id, setter](bool shown) {
      (chart_->*setter)(shown);
      settings_.set_shown(actions_[id]->objectName(), shown);
    });
    (chart_->*setter)(actions_[id]->isChecked());
  };
  toggle(Id::show_parts, &views::FrontierChart::set_parts_visible);
  toggle(Id::show_others, &views::FrontierChart::set_others_visible);
  toggle(Id::show_pinned, &views::FrontierChart::set_pinned_visible);
  toggle(Id::log_time, &views::FrontierChart::set_log_time);
  connect(actions_[Id::simulated_clock], &QAction::toggled, this, [this](bool simulated) {
    settings_.set_shown(actions_[Id::simulated_clock]->objectName(), simulated);
    clock_->set_on(simulated);
    chart_->fit();  // everything has moved
  });
  clock_->set_on(actions_[Id::simulated_clock]->isChecked());
  const auto dock_toggle = [this](Id id, QDockWidget* dock) {
    connect(actions_[id], &QAction::triggered, dock, &QDockWidget::setVisible);
    connect(dock, &QDockWidget::visibilityChanged, this,
            [this, id, dock] { actions_[id]->setChecked(!dock->isHidden()); });
  };
  dock_toggle(Id::scenario_dock, scenario_dock_);
  dock_toggle(Id::plan_dock, plan_dock_);
  on(Id::chart_only, [this](bool only) {
    if (only) {
      before_chart_only_ = layout_state();
      for (QDockWidget* dock : findChildren<QDockWidget*>()) dock->hide();
    } else {
      restore_layout(before_chart_only_);
    }
  });
  on(Id::reset_layout, [this] { default_layout(); });
  on(Id::help, [this] { show_help(); });
  on(Id::manual, [this] { (new ManualWindow(this))->show(); });
  on(Id::shortcuts, [this] { show_shortcuts(); });
  on(Id::about, [this] { show_about(); });
}

bool MainWindow::event(QEvent* event) {
  // In the status bar's own way a tip would cover the verdict beside the figures.
  if (event->type() == QEvent::StatusTip && figures_label_) {
    tip_ = static_cast<QStatusTipEvent*>(event)->tip();
    figures_label_->setText(tip_.isEmpty() ? figures_ : tip_);
    return true;
  }
  return QMainWindow::event(event);
}

bool MainWindow::focusNextPrevChild(bool next) { return focus_regions_->step(next); }

void MainWindow::closeEvent(QCloseEvent* event) {
  if (!leaving_ && asks_before_leaving_ && !unsaved().isEmpty()) {
    event->ignore();
    before_leaving([this] {
      leaving_ = true;
      close();
    });
    return;
  }
  settings_.set_window(saveGeometry(),
                       actions_[ActionId::chart_only]->isChecked() ? before_chart_only_ : layout_state());
  runner_->stop_all();
  tasks_->cancel_all();
  if (!recovery_folder_.isEmpty()) drop_recovery();
  event->accept();
}

}  // namespace turnpoint::app
