// SPDX-License-Identifier: Apache-2.0
// The window: builds the docks and wires document, searches and views together; it computes nothing itself.
#pragma once

#include <QMainWindow>
#include <memory>
#include <optional>
#include <vector>

#include "app/actions.h"
#include "app/kept_work.h"
#include "app/linked_views.h"
#include "app/search_backend.h"
#include "app/session.h"

class QDockWidget;
class QLabel;
class QMenu;
class QStackedWidget;

namespace turnpoint::views {
class ChartHeader;
class FrontierChart;
class HardwareView;
class MessageBar;
class NotesView;
class ComparisonView;
class ParallelismView;
class PlanPanel;
class ScenarioPanel;
class ValidationView;
}  // namespace turnpoint::views

namespace turnpoint::app {

class AppSettings;
class CommandPalette;
class Document;
class FocusRegions;
class HardwarePage;
class ParallelismPage;
class PinnedSearches;
class FitJudge;
class PickKeeper;
class PlanLoader;
class RecoveryCopy;
class ScheduleLoader;
class SearchRunner;
class SimulatedClock;
class StartPage;
class TaskManager;
class TaskStrip;
class ValidationPage;
class ValidationRunner;
struct MethodRun;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  MainWindow(const SearchBackend& backend, AppSettings& settings, QWidget* parent = nullptr);
  ~MainWindow() override;

  /// What a path is decides its content: session, hardware profile, else a model. Built-in names are models.
  void open_path(const QString& path);
  /// The same where a hardware profile was asked for: anything else is refused, and called by what it is.
  void open_hardware_file(const QString& path);
  /// Model and hardware together, as from the command line or a sample; empty parts take the sample's.
  void open_scenario(const std::string& model, const std::string& hardware, int devices);
  void open_sample(int index);
  void open_study(int index);
  void open_session(const QString& path);
  /// Measured logs, read together in the background; where they make a profile it becomes the hardware.
  void open_logs(const QStringList& paths);
  void open_settings(const QString& path);  ///< of a training framework: its split as one of the user's own
  bool save_session(const QString& path);
  /// The window is to need no more than this: docks share one side where the screen is too narrow for both. 0: any.
  void set_most_width(int width);
  /// Whether closing or opening a session asks first where work would be lost. Off at first: nobody may be there.
  void set_asks_before_leaving(bool asks) { asks_before_leaving_ = asks; }
  /// From now on unsaved work is copied to `folder` whenever it has changed, and what windows that were killed have
  /// left there is offered (app/recovery.h).
  void keep_recovery(const QString& folder, int every_ms);
  /// Ends as a clean exit does, but for unsaved work, which stays as a recovery copy; nobody is asked.
  void end_by_signal();
  void export_to(const ExportFormat& format, const QString& path);
  bool export_chart(const QString& path);        ///< .svg, .pdf or .png by suffix
  bool export_parallelism(const QString& path);  ///< .svg or .csv by suffix
  /// The timeline or the memory view as it is on show, .svg or .png by suffix.
  bool export_picture(QWidget* view, const QString& path);

  /// The first frontier is there, exact, with its plan in all views, and nothing is running.
  bool settled() const;

  Document& document() { return *document_; }
  SearchRunner& runner() { return *runner_; }
  PlanLoader& loader() { return *loader_; }
  ScheduleLoader& schedules() { return *schedules_; }
  SimulatedClock& clock() { return *clock_; }
  const LinkedTabs& tabs() const { return tabs_; }
  TaskManager& tasks() { return *tasks_; }
  const ActionSet& actions() const { return actions_; }
  views::FrontierChart* chart() { return chart_; }
  views::ScenarioPanel* scenario_panel() { return scenario_panel_; }
  views::PlanPanel* plan_panel() { return plan_panel_; }
  views::HardwareView* hardware_view() { return hardware_view_; }
  views::ComparisonView* comparison_view() { return comparison_view_; }
  views::ParallelismView* parallelism_view() { return parallelism_view_; }
  ParallelismPage* parallelism_page() { return parallelism_page_; }
  HardwarePage* hardware_page() { return hardware_page_; }
  views::ValidationView* validation_view() { return validation_view_; }
  ValidationPage* validation_page() { return validation_page_; }
  ValidationRunner& validation_runner() { return *validation_runner_; }
  views::NotesView* notes_view() { return notes_view_; }
  PinnedSearches* pinned_searches() { return pinned_searches_; }
  views::MessageBar* messages() { return messages_; }
  TaskStrip* task_strip() { return task_strip_; }
  CommandPalette* palette_box() { return palette_; }
  FocusRegions& focus_regions() { return *focus_regions_; }

 protected:
  void closeEvent(QCloseEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  bool focusNextPrevChild(bool next) override;
  bool event(QEvent* event) override;

 private:
  // main_window.cpp: building and wiring; main_window_bars.cpp: menus and bars
  void build_centre();
  void build_docks();
  void build_menus();
  void build_theme_menu(QMenu* menu);
  void build_tool_bar();
  void build_status_bar();
  void connect_document();
  void connect_panels();
  void connect_actions();
  // main_window_methods.cpp: the list of methods, splits and variants
  void connect_methods();
  void ask_method_settings(const QString& name);
  void add_split(const QString& text);
  // main_window_offers.cpp
  void connect_offers();
  void say_what_was_taken();
  QDockWidget* add_dock(const QString& key, const QString& title, QWidget* widget, Qt::DockWidgetArea area,
                        QDockWidget* behind = nullptr);

  // main_window_layout.cpp: where the docks stand
  void default_layout();
  /// Scenario and plan share one side while the window is too narrow for both, and part again when it is not.
  void fit_docks();
  QByteArray layout_state() const;  ///< as it is where there is room
  void restore_layout(const QByteArray& state);
  void name_tab_bars();

  // main_window_refresh.cpp: from state to what is shown
  void show_scenario();
  void show_chart();
  void show_methods();
  void show_point();
  const MethodRun* picked_run() const;  ///< the one with the picked point; null: none is picked
  void show_plan();
  void show_plan_in(LinkedView& view);
  void show_schedule();
  void show_peak();
  void show_status();
  void show_recent();
  void fill_choices();

  // main_window_files.cpp: files and the few pages of help
  void ask_open(const QString& title, const QString& filter, void (MainWindow::*then)(const QString&));
  void ask_open_logs();
  void show_hardware_page();
  void open_profile(const QString& path, const QString& title);
  void ask_save(const QString& title, const QString& suggestion, const QString& filter,
                std::function<void(const QString&)> then);
  void remember_opened();
  // main_window_exports.cpp: formats of core/export, and the chart
  void build_export_menu(QMenu* file);
  void connect_exports();
  void show_result_exports(bool there);  ///< which can be written now, and why the others cannot
  void show_plan_exports();
  void ask_export(const ExportFormat& format);
  void ask_export_chart(const QString& suffix);
  void ask_export_parallelism(const QString& suffix);
  void ask_export_picture(QWidget* view, const QString& name, const QString& suffix);
  // main_window_session.cpp: sessions, and what would be lost
  Session make_session(bool with_answers = true) const;
  void ask_save_session(std::function<void()> then = {});
  KeptWork work_now() const;
  QStringList unsaved() const;  ///< in words, what a session file would keep and none does
  void watch_kept_work();
  /// At once where nothing is unsaved; else once the user has saved it or does not want it, or never.
  void before_leaving(std::function<void()> then);
  /// `recovered`: nobody else has it, so it is unsaved as a whole. `then` is called once it is open.
  void take_session(const Session& session, const QString& path, bool recovered = false,
                    std::function<void()> then = {});
  // main_window_recovery.cpp: unsaved work that outlives the window
  void write_recovery();
  void drop_recovery();
  void offer_recovery();
  void show_title();
  // main_window_probe.cpp: this machine measured, plans run on it
  void build_validation();
  void connect_validation();
  void ask_measure();
  void ask_save_report(const QString& suffix);

  void raise_view(const QString& key);
  void report(const Error& error, const QString& what_failed);
  /// `about`: what takes the message away once it succeeds (views::MessageBar::clear_errors).
  void report_about(const Error& error, const QString& what_failed, const QString& about);
  /// All ways to open something replace one another: after a bad file a good one is the answer.
  static QString about_opening() { return QStringLiteral("opening"); }
  void note(const QString& what, const QString& where = {});
  void pin_frontier();
  static QString batch_words(const Scenario& scenario);  ///< the end of a pinned frontier's label
  void open_palette();
  void show_help();
  void show_shortcuts();
  void show_about();

  const SearchBackend& backend_;
  AppSettings& settings_;
  ActionSet actions_;
  std::unique_ptr<TaskManager> tasks_;  ///< ends before everything it calls back into
  std::unique_ptr<Document> document_;
  std::unique_ptr<SearchRunner> runner_;
  std::unique_ptr<FitJudge> judge_;
  std::unique_ptr<PickKeeper> keeper_;
  std::unique_ptr<PlanLoader> loader_;
  std::unique_ptr<ScheduleLoader> schedules_;
  std::unique_ptr<SimulatedClock> clock_;
  std::unique_ptr<ValidationRunner> validation_runner_;

  views::MessageBar* messages_ = nullptr;
  views::ChartHeader* header_ = nullptr;
  views::FrontierChart* chart_ = nullptr;
  views::ScenarioPanel* scenario_panel_ = nullptr;
  views::PlanPanel* plan_panel_ = nullptr;
  views::HardwareView* hardware_view_ = nullptr;
  HardwarePage* hardware_page_ = nullptr;
  views::ComparisonView* comparison_view_ = nullptr;
  views::ParallelismView* parallelism_view_ = nullptr;
  ParallelismPage* parallelism_page_ = nullptr;
  views::ValidationView* validation_view_ = nullptr;
  ValidationPage* validation_page_ = nullptr;
  views::NotesView* notes_view_ = nullptr;
  PinnedSearches* pinned_searches_ = nullptr;
  QStackedWidget* centre_ = nullptr;
  StartPage* start_page_ = nullptr;
  CommandPalette* palette_ = nullptr;
  FocusRegions* focus_regions_ = nullptr;
  TaskStrip* task_strip_ = nullptr;
  QDockWidget *scenario_dock_ = nullptr, *plan_dock_ = nullptr;
  std::vector<QDockWidget*> view_docks_;
  std::vector<LinkedView> linked_;
  LinkedTabs tabs_;  ///< its list is in linked_
  QMenu *recent_menu_ = nullptr, *export_menu_ = nullptr, *views_menu_ = nullptr;
  const ModelSource* said_of_ = nullptr;  ///< whose taken settings have been said
  QLabel *state_label_ = nullptr, *figures_label_ = nullptr, *change_label_ = nullptr, *seed_label_ = nullptr,
         *memory_label_ = nullptr, *message_label_ = nullptr;
  ModelPtr shown_model_;
  QString session_path_;
  QString figures_, tip_;  ///< of the status bar; the tip of what the pointer is on stands in the place of the figures
  KeptWork kept_;          ///< as it was opened or saved
  std::unique_ptr<RecoveryCopy> recovery_;  ///< null: nothing is unsaved, as far as was looked
  KeptWork recovered_;                      ///< what it holds
  QString recovery_folder_;                 ///< empty: no copy is kept
  bool untouched_ = true, asks_before_leaving_ = false, leaving_ = false;
  QByteArray before_chart_only_;
  bool first_show_ = true, folded_ = false;
  QByteArray unfolded_state_;
  int most_width_ = 0, unfolded_width_ = 0;
};

}  // namespace turnpoint::app
