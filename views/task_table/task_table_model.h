// SPDX-License-Identifier: Apache-2.0
// Qt's view of TaskRows: a flat table, a row per task.
#pragma once

#include <QAbstractTableModel>
#include <QPalette>

#include "views/common/format.h"
#include "views/task_table/task_rows.h"

namespace turnpoint::views {

class TaskTableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;

  void set_rows(TaskRowsPtr rows);  ///< null: empty
  void set_palette(const QPalette& palette);
  const TaskRowsPtr& rows() const { return rows_; }
  TaskIndex task_at(int row) const { return rows_->tasks[std::size_t(row)]; }
  int row_of(TaskIndex task) const;  ///< -1: not shown

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  QString text(TaskIndex task, TaskColumn column) const;
  QString tool_tip(TaskIndex task) const;

  TaskRowsPtr rows_;
  TimeUnit unit_;           ///< of starts
  TimeUnit duration_unit_;  ///< fits the longest task
  QPalette palette_;
};

}  // namespace turnpoint::views
