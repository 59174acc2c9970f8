// SPDX-License-Identifier: Apache-2.0
// The tasks of the schedule on show as a table: filter, sort, copy; picking and hovering are shared with all views.
// Follows the selection's schedule by itself. Sorting and filtering run on another thread, the newest wish wins; the
// last good rows stay until then.
#pragma once

#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPointer>
#include <QToolButton>
#include <QTreeView>
#include <QWidget>
#include <optional>
#include <thread>

#include "views/common/selection_model.h"
#include "views/common/table_setup.h"
#include "views/task_table/task_table_model.h"

namespace turnpoint::views {

class ToggleButton;

class TaskTableView : public QWidget {
  Q_OBJECT
 public:
  explicit TaskTableView(QWidget* parent = nullptr);
  ~TaskTableView() override;

  void set_selection(SelectionModel* selection);
  void set_message(const QString& message);  ///< said while there is no schedule

  QJsonObject save_state() const;  ///< sorting
  void restore_state(const QJsonObject& state);

  /// Picked rows (all where none is, at most kMostCopied) with their head, tabs between columns.
  QString rows_as_text() const;
  static constexpr int kMostCopied = 100'000;

  bool busy() const { return working_; }
  QWidget* tool_bar() const { return bar_.widget; }
  QTreeView* table() const { return table_; }
  TaskTableModel* model() const { return model_; }
  QLineEdit* filter_field() const { return bar_.filter; }
  QString summary() const { return bar_.summary->text(); }

 protected:
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void make_tool_bar();
  void make_table();
  void wish();  ///< rows for the present schedule, filter and sorting
  void start(TaskRowsRequest request);
  void arrived(TaskRowsPtr rows);
  void show_picked();
  void pick_rows();
  void fit_columns();
  void update_words();

  TaskTableModel* model_;
  QTreeView* table_;
  QLabel* message_;
  TableBar bar_;
  QPointer<SelectionModel> selection_;
  SchedulePtr schedule_;
  TaskColumn sorted_by_ = TaskColumn::start;
  bool descending_ = false;
  ToggleButton* without_time_ = nullptr;
  bool changing_selection_ = false, columns_fitted_ = false;

  std::jthread worker_;
  bool working_ = false;
  std::optional<TaskRowsRequest> next_;  ///< asked for while the worker was busy
};

}  // namespace turnpoint::views
