// SPDX-License-Identifier: Apache-2.0
// Menus, tool bar and status bar: made once from the table of actions.
#include <QAction>
#include <QActionGroup>
#include <QCoreApplication>
#include <QDockWidget>
#include <QLabel>
#include <QMenu>
#include <QMenuBar>
#include <QStatusBar>
#include <QTimer>
#include <QToolBar>
#include <QToolButton>

#include "app/app_settings.h"
#include "app/main_window.h"
#include "app/search_runner.h"
#include "app/start_page.h"
#include "app/studies.h"
#include "app/task_strip.h"
#include "app/theme.h"
#include "views/common/elided_label.h"
#include "views/common/section_head.h"

namespace turnpoint::app {

namespace {
constexpr int kStatusEvery_ms = 1000;
}

void MainWindow::build_menus() {
  const auto add = [this](QMenu* menu, std::initializer_list<ActionId> ids) {
    for (const ActionId id : ids) menu->addAction(actions_[id]);
  };
  using Id = ActionId;
  QMenu* file = menuBar()->addMenu(tr("&File"));
  add(file, {Id::open_model, Id::open_hardware, Id::open_logs, Id::open_session});
  recent_menu_ = file->addMenu(tr("Open recent"));
  QMenu* ready = file->addMenu(tr("Samples"));
  for (int i = 0; const Sample& sample : samples())
    ready->addAction(StartPage::title_of(sample), this, [this, sample_index = i++] { open_sample(sample_index); });
  QMenu* sample_studies = file->addMenu(tr("Sample studies"));
  for (int i = 0; const Study& study : studies()) {
    sample_studies->addAction(QCoreApplication::translate("Studies", study.title), this, [this, i] { open_study(i); });
    ++i;
  }
  file->addSeparator();
  add(file, {Id::save_session, Id::save_session_as, Id::close_model});
  file->addSeparator();
  build_export_menu(file);
  file->addSeparator();
  add(file, {Id::new_window, Id::quit});
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  add(edit, {Id::undo, Id::redo});
  edit->addSeparator();
  add(edit, {Id::copy_point, Id::find});
  QMenu* scenario = menuBar()->addMenu(tr("&Scenario"));
  add(scenario, {Id::reset_factors, Id::pin, Id::clear_pinned});
  QMenu* search = menuBar()->addMenu(tr("Sea&rch"));
  add(search, {Id::search_all});
  QMenu* single = search->addMenu(tr("Search with"));
  for (const Method& method : backend_.methods())
    if (!method.own_split)  // that needs parameters: the list of methods has it
      single->addAction(QString::fromStdString(method.title), this,
                        [this, name = method.name] { runner_->search(name); });
  search->addSeparator();
  add(search, {Id::stop_newest, Id::stop_all, Id::tasks});
  QMenu* tools = menuBar()->addMenu(tr("&Tools"));
  add(tools, {Id::measure});
  tools->addSeparator();
  add(tools, {Id::validate, Id::validate_sample, Id::calibrate});
  tools->addSeparator();
  add(tools, {Id::open_report, Id::save_report, Id::export_report_csv, Id::export_report_markdown});
  QMenu* view = menuBar()->addMenu(tr("&View"));
  add(view, {Id::previous_plan, Id::next_plan, Id::previous_point, Id::next_point, Id::least_memory, Id::least_time,
             Id::turning_point});
  view->addSeparator();
  add(view, {Id::show_parts, Id::show_others, Id::show_pinned, Id::log_time, Id::simulated_clock});
  view->addSeparator();
  add(view, {Id::zoom_in, Id::zoom_out, Id::fit_chart});
  view->addSeparator();
  add(view, {Id::scenario_dock, Id::plan_dock});
  for (std::size_t i = 0; i < view_docks_.size(); ++i) {
    QAction* show = view->addAction(view_docks_[i]->windowTitle(), this, [dock = view_docks_[i]] {
      dock->show();
      dock->raise();
    });
    if (i < 9) show->setShortcut(QKeySequence(QStringLiteral("Ctrl+%1").arg(i + 1)));
  }
  view->addSeparator();
  add(view, {Id::next_region, Id::previous_region});
  view->addSeparator();
  add(view, {Id::chart_only, Id::reset_layout});
  view->addSeparator();
  build_theme_menu(view->addMenu(tr("Theme")));
  QMenu* help = menuBar()->addMenu(tr("&Help"));
  add(help, {Id::help, Id::manual, Id::shortcuts, Id::about});
}

void MainWindow::build_theme_menu(QMenu* menu) {
  auto* choices = new QActionGroup(menu);
  const struct {
    ActionId id;
    Theme theme;
  } entries[] = {{ActionId::theme_system, Theme::system},
                 {ActionId::theme_light, Theme::light},
                 {ActionId::theme_dark, Theme::dark}};
  for (const auto& [id, theme] : entries) {
    QAction* action = actions_[id];
    choices->addAction(action);
    action->setChecked(theme == applied_theme());
    menu->addAction(action);
    connect(action, &QAction::triggered, this, [this, theme = theme] {
      apply_theme(theme);
      settings_.set_theme(theme_key(theme));
    });
  }
}

void MainWindow::build_tool_bar() {
  QToolBar* bar = addToolBar(tr("Main tool bar"));
  bar->setObjectName(QStringLiteral("tool_bar"));
  bar->setMovable(false);
  bar->setIconSize(QSize(16, 16));
  bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  using Id = ActionId;
  const auto button = [&](Id id, const QString& text, QMenu* menu = nullptr) {
    auto* made = new QToolButton(bar);
    made->setDefaultAction(actions_[id]);
    if (!text.isEmpty())
      actions_[id]->setIconText(text);  // the button takes its text again whenever the action changes
    made->setToolButtonStyle(text.isEmpty() ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
    made->setAccessibleName(actions_[id]->text());
    if (menu) {
      made->setMenu(menu);
      made->setPopupMode(id == Id::export_menu ? QToolButton::InstantPopup : QToolButton::MenuButtonPopup);
    }
    bar->addWidget(made);
    return made;
  };
  button(Id::open_model, tr("Open model"));
  button(Id::open_hardware, tr("Hardware"));
  bar->addSeparator();
  button(Id::undo, {});
  button(Id::redo, {});
  bar->addSeparator();
  auto* search_menu = new QMenu(bar);
  for (const Method& method : backend_.methods())
    if (!method.own_split)
      search_menu->addAction(QString::fromStdString(method.title), this,
                             [this, name = method.name] { runner_->search(name); });
  search_menu->addSeparator();
  search_menu->addAction(actions_[Id::stop_all]);
  button(Id::search_all, tr("Search"), search_menu);
  button(Id::pin, tr("Pin frontier"));
  button(Id::export_menu, tr("Export"), export_menu_);
  auto* gap = new QWidget(bar);
  gap->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
  bar->addWidget(gap);
  auto* find = new QToolButton(bar);
  find->setDefaultAction(actions_[Id::find]);
  actions_[Id::find]->setIconText(tr("Find operator or action   Ctrl+K"));
  find->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  find->setAccessibleName(tr("Find operator or action"));
  bar->addWidget(find);
}

void MainWindow::build_status_bar() {
  const auto label = [this](const char* name) {
    auto* made = new QLabel(this);
    made->setObjectName(QLatin1String(name));
    made->setFont(views::secondary_font(font()));
    made->setContentsMargins(6, 2, 6, 2);
    return made;
  };
  statusBar()->setSizeGripEnabled(false);
  state_label_ = label("status_state");
  QFont bold = state_label_->font();
  bold.setBold(true);
  state_label_->setFont(bold);
  // Gives way first: in a narrow window it ends in three dots, and its tip has the rest.
  figures_label_ = new views::Elided<QLabel>(this);
  figures_label_->setObjectName(QStringLiteral("status_figures"));
  figures_label_->setFont(views::secondary_font(font()));
  change_label_ = label("status_change");
  seed_label_ = label("status_seed");
  memory_label_ = label("status_memory");
  message_label_ = label("status_messages");
  task_strip_ = new TaskStrip(*tasks_, this);
  statusBar()->addWidget(state_label_);
  statusBar()->addWidget(figures_label_, 1);
  statusBar()->addPermanentWidget(task_strip_);
  for (QLabel* part : {change_label_, memory_label_, seed_label_, message_label_})
    statusBar()->addPermanentWidget(part);
  auto* timer = new QTimer(this);
  timer->setInterval(kStatusEvery_ms);
  connect(timer, &QTimer::timeout, this, &MainWindow::show_status);
  timer->start();
}

}  // namespace turnpoint::app
