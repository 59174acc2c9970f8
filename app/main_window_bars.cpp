// SPDX-License-Identifier: Apache-2.0
// Menus, tool bar and find field: made from the table of actions.
#include <QAction>
#include <QActionGroup>
#include <QCoreApplication>
#include <QDockWidget>
#include <QMenu>
#include <QMenuBar>
#include <QToolBar>
#include <QToolButton>

#include "app/app_settings.h"
#include "app/command_palette.h"
#include "app/exports.h"
#include "app/main_window.h"
#include "app/opener.h"
#include "app/sessions.h"
#include "app/start_page.h"
#include "app/studies.h"
#include "app/theme.h"
#include "views/common/format.h"
#include "views/scenario/scenario_panel.h"

namespace turnpoint::app {

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
    ready->addAction(StartPage::title_of(sample), this,
                     [this, sample_index = i++] { opener_->open_sample(sample_index); });
  QMenu* sample_studies = file->addMenu(tr("Sample studies"));
  for (int i = 0; const Study& study : studies()) {
    sample_studies->addAction(QCoreApplication::translate("Studies", study.title), this,
                              [this, i] { sessions_->open_study(i); });
    ++i;
  }
  file->addSeparator();
  add(file, {Id::save_session, Id::save_session_as, Id::close_model});
  file->addSeparator();
  file->addMenu(exports_->menu());
  file->addSeparator();
  add(file, {Id::new_window, Id::quit});
  QMenu* edit = menuBar()->addMenu(tr("&Edit"));
  add(edit, {Id::undo, Id::redo});
  edit->addSeparator();
  add(edit, {Id::copy_point, Id::why, Id::find});
  QMenu* scenario = menuBar()->addMenu(tr("&Scenario"));
  add(scenario, {Id::reset_factors, Id::longest_sequence, Id::pin, Id::clear_pinned});
  QMenu* search = menuBar()->addMenu(tr("Sea&rch"));
  add(search, {Id::search_all});
  QMenu* single = search->addMenu(tr("Search with"));
  for (const Method& method : work_.backend.methods())
    if (!method.own_split)  // that needs parameters: the list of methods has it
      single->addAction(QString::fromStdString(method.title), this,
                        [this, name = method.name] { work_.runner.search(name); });
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
  for (std::size_t i = 0; i < tabs_.size(); ++i) {
    QAction* show = view->addAction(tabs_[i]->title(), tabs_[i], &Tab::raise_requested);
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
  for (const Method& method : work_.backend.methods())
    if (!method.own_split)
      search_menu->addAction(QString::fromStdString(method.title), this,
                             [this, name = method.name] { work_.runner.search(name); });
  search_menu->addSeparator();
  search_menu->addAction(actions_[Id::stop_all]);
  button(Id::search_all, tr("Search"), search_menu);
  button(Id::pin, tr("Pin frontier"));
  button(Id::export_menu, tr("Export"), exports_->menu());
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

void MainWindow::open_palette() {
  std::vector<PaletteEntry> entries;
  for (QAction* action : actions_.all()) {
    if (!action->isEnabled()) continue;
    entries.push_back({action->text().remove(u'&'), action->shortcut().toString(QKeySequence::NativeText),
                       [action] { action->trigger(); }});
  }
  for (const OptionRecord& option : scenario_options()) {
    const QString key = views::to_qt(option.key);
    if (scenario_panel_->has_setting(key))
      entries.push_back({views::to_qt(option.text), tr("setting"), [this, key] {
                           scenario_dock_->show();
                           scenario_dock_->raise();
                           scenario_panel_->focus_setting(key);
                         }});
  }
  for (const Method& method : work_.backend.methods()) {
    const QString title = views::to_qt(method.title);
    if (!method.own_split)
      entries.push_back({title, tr("search with this method"), [this, name = method.name] {
                           work_.runner.set_enabled(name, true);
                           work_.runner.search(name);
                         }});
  }
  for (const BuiltinModel& model : work_.backend.builtin_models())
    entries.push_back({views::to_qt(model.name), tr("open this model"),
                       [this, name = "builtin:" + model.name] { opener_->open_path(QString::fromStdString(name)); }});
  if (const ScenarioPtr& scenario = work_.document.scenario()) {
    const Model& model = *scenario->model;
    for (std::size_t i = 0; i < model.operators.size(); ++i) {
      const Operator& op = model.operators[OperatorId(i)];
      entries.push_back({views::to_qt(op.name), views::to_qt(op.detail),
                         [this, i] { work_.document.selection().pick_operators({OperatorId(i)}); }});
    }
  }
  palette_->open(std::move(entries));
}

}  // namespace turnpoint::app
