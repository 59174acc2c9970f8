// SPDX-License-Identifier: Apache-2.0
// The Validation tab: plans that were run on this machine, each a report of what was predicted and what was measured,
// as bars, as a table, and all of them together as a scatter with their errors.
#pragma once

#include <QJsonObject>
#include <QPointer>
#include <QSet>
#include <QWidget>
#include <vector>

#include "core/hardware/probe_job.h"
#include "views/validation/validation_content.h"

class QAction;
class QButtonGroup;
class QDoubleSpinBox;
class QLabel;
class QListWidget;
class QSortFilterProxyModel;
class QSplitter;
class QStackedWidget;
class QToolButton;
class QTreeView;

namespace turnpoint::views {

class EngineFields;
class NoteLabel;
class SelectionModel;
class ToggleButton;
class ValidationBars;
class ValidationModel;
class ValidationScatter;

/// Made by the window, so that menus, palette and buttons say and allow the same.
struct ValidationActions {
  QAction *run = nullptr, *sample = nullptr, *calibrate = nullptr, *open = nullptr, *save = nullptr, *csv = nullptr,
          *markdown = nullptr;
};

/// How a plan is run.
enum class ValidationWay : std::uint8_t {
  cpu_ranks,   ///< a process for every device of the plan
  cpu_slice,   ///< one device's part alone
  cuda_slice,  ///< the same on a GPU
  pytorch,     ///< the exported program, under this engine (core/validation/engine/engine_step.h)
  jax,
};

/// By ValidationWay, in session files; of an engine its own.
inline constexpr const char* kWayKeys[] = {"cpu_ranks", "cpu_slice", "cuda_slice", "pytorch", "jax"};
inline constexpr int kValidationWays = 5;

class ValidationView : public QWidget {
  Q_OBJECT
 public:
  explicit ValidationView(const ValidationActions& actions, QWidget* parent = nullptr);

  /// Oldest first; `current` is shown, -1 keeps what is.
  void set_reports(std::vector<ValidationReportPtr> reports, int current = -1);
  const std::vector<ValidationReportPtr>& reports() const { return reports_; }
  void set_model(ModelPtr model);
  void set_selection(SelectionModel* selection);
  /// `reason`: why the picked plan cannot be run, or empty. `words`: what is going on, or empty.
  void set_state(const QString& reason, const QString& words);

  /// The second one beside the first.
  void compare(const ValidationReportPtr& shown, const ValidationReportPtr& beside);
  ValidationReportPtr current() const;
  ValidationReportPtr compared() const;  ///< null: only one is picked in the list
  ValidationWay way() const;
  bool proves() const;  ///< results are compared with the unpartitioned step first
  double budget_s() const;
  /// Shown where the way is an engine's. What is typed there starts programs, so no session file says it.
  EngineFields* engine_fields() const { return engine_fields_; }
  /// Reports that may be judged together with the current one: same model, hardware, machine and calibration.
  std::vector<ValidationReportPtr> comparable() const { return comparable(current() && current()->calibrated); }

  enum class Page { bars, table, plans };
  void show_page(Page page);
  Page page() const;

  QJsonObject save_state() const;
  void restore_state(const QJsonObject& state);

  QWidget* tool_bar() const { return tool_bar_; }
  QListWidget* list() const { return list_; }
  ValidationBars* bars() const { return bars_; }
  QTreeView* table() const { return table_; }
  ValidationScatter* scatter() const { return scatter_; }
  QString summary_text() const;
  /// The table with its head, tabs between columns.
  QString rows_as_text() const;
  QString empty_text() const;
  bool is_empty() const { return reports_.empty(); }

 signals:
  void remove_requested(const QList<int>& reports);
  void way_changed();
  void stop_requested();
  void current_changed();

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void make_tool_bar();
  QWidget* make_ways();
  QWidget* make_empty();
  QWidget* make_list();
  QWidget* make_report();
  void make_table(QWidget* parent);
  void show_report();
  void fit_columns();
  void show_plans();
  void show_state();
  void fill_list();
  std::vector<ValidationReportPtr> comparable(bool calibrated) const;
  int row_of(const ValidationReportPtr& report) const;  ///< in the list; -1: not there
  void pick_table_row();
  void mark_table_rows();
  void remove_picked();
  void tint();

  ValidationActions actions_;
  std::vector<ValidationReportPtr> reports_;
  ValidationContentPtr content_;
  ModelPtr model_;
  QPointer<SelectionModel> selection_;
  QString reason_, running_words_;
  bool changing_ = false;

  QWidget* tool_bar_;
  NoteLabel* words_;
  QToolButton* stop_;
  QButtonGroup* ways_;
  ToggleButton* prove_;
  QDoubleSpinBox* budget_;
  EngineFields* engine_fields_;
  QStackedWidget *whole_, *pages_;
  QLabel *empty_reason_, *title_, *verdict_, *disturbed_;
  NoteLabel *facts_, *compared_;
  ToggleButton* page_buttons_[3];
  QListWidget* list_;
  ValidationBars* bars_;
  ValidationModel* rows_;
  QSortFilterProxyModel* sorted_;
  QTreeView* table_;
  ValidationScatter* scatter_;
  QLabel* summary_;
  NoteLabel* summary_scope_;
  QSplitter* across_ = nullptr;
};

}  // namespace turnpoint::views
