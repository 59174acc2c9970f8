// SPDX-License-Identifier: Apache-2.0
#include "views/task_table/task_table_model.h"

#include "views/common/plan_figures.h"
#include "views/common/theme_colors.h"

namespace turnpoint::views {
namespace {

bool is_number(int column) {
  return column == int(TaskColumn::sent) || (column >= int(TaskColumn::start) && column <= int(TaskColumn::persistent));
}

}  // namespace

void TaskTableModel::set_rows(TaskRowsPtr rows) {
  beginResetModel();
  rows_ = std::move(rows);
  unit_ = time_unit_for(rows_ && rows_->request.schedule ? rows_->request.schedule->makespan_s : 1);
  duration_unit_ = time_unit_for(rows_ ? rows_->longest_s / 10 : 1);
  endResetModel();
  emit headerDataChanged(Qt::Horizontal, 0, columnCount() - 1);
}

void TaskTableModel::set_palette(const QPalette& palette) { palette_ = palette; }

int TaskTableModel::row_of(TaskIndex task) const {
  if (!rows_ || task >= rows_->row_of.size() || rows_->row_of[task] == kNone) return -1;
  return int(rows_->row_of[task]);
}

int TaskTableModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !rows_ ? 0 : int(rows_->tasks.size());
}

int TaskTableModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : int(TaskColumn::kCount);
}

QString TaskTableModel::text(TaskIndex task, TaskColumn column) const {
  const Schedule& s = *rows_->request.schedule;
  const TaskGraph& g = *s.graph;
  const auto bytes = [](std::int64_t value) { return value == 0 ? QString() : memory_text(value); };
  switch (column) {
    case TaskColumn::name: return to_qt(g.names[task]);
    case TaskColumn::kind: return QString::fromLatin1(to_string(g.kind[task]));
    case TaskColumn::scope: return to_qt(g.scopes[g.scope[task]]);
    case TaskColumn::device: return to_qt(s.devices[s.device_of[task]].name);
    case TaskColumn::start:
      return s.item_of[task] == kNone ? QString() : grouped_number(task_start_s(s, task) * unit_.per_second, 3);
    case TaskColumn::duration:
      return s.item_of[task] == kNone ? QString() : figure_text(task_duration_s(s, task) * duration_unit_.per_second);
    case TaskColumn::output: return bytes(g.output_bytes[task]);
    case TaskColumn::persistent: return bytes(g.persistent_bytes[task]);
    case TaskColumn::sent: return bytes(rows_->sent_bytes[task]);
    case TaskColumn::critical: return rows_->critical[task] ? tr("critical") : QString();
    default: return {};
  }
}

QString TaskTableModel::tool_tip(TaskIndex task) const {
  const TaskGraph& g = *rows_->request.schedule->graph;
  QString text = to_qt(g.describe(task));
  if (g.colocate[task] != kNone) text += u'\n' + tr("together with group '%1'").arg(to_qt(g.groups[g.colocate[task]]));
  if (g.workspace_bytes[task] > 0) text += u'\n' + tr("workspace %1").arg(memory_text(g.workspace_bytes[task]));
  return text;
}

QVariant TaskTableModel::data(const QModelIndex& index, int role) const {
  const TaskIndex task = task_at(index.row());
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole: return text(task, TaskColumn(column));
    case Qt::ToolTipRole: return tool_tip(task);
    case Qt::TextAlignmentRole: return int(Qt::AlignVCenter | (is_number(column) ? Qt::AlignRight : Qt::AlignLeft));
    case Qt::ForegroundRole:
      if (column == int(TaskColumn::critical)) return theme_colors(palette_).warning;
      if (column == int(TaskColumn::kind) || column == int(TaskColumn::scope)) return theme_colors(palette_).secondary;
      return {};
    default: return {};
  }
}

QVariant TaskTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter | (is_number(section) ? Qt::AlignRight : Qt::AlignLeft));
  if (role == Qt::ToolTipRole && section == int(TaskColumn::sent))
    return tr("What the task sends to other devices, once to each of them");
  if (role != Qt::DisplayRole) return {};
  switch (TaskColumn(section)) {
    case TaskColumn::name: return tr("Task");
    case TaskColumn::kind: return tr("Kind");
    case TaskColumn::scope: return tr("Layer");
    case TaskColumn::device: return tr("Device");
    case TaskColumn::start: return tr("Start %1").arg(unit_.name);
    case TaskColumn::duration: return tr("Time %1").arg(duration_unit_.name);
    case TaskColumn::output: return tr("Output");
    case TaskColumn::persistent: return tr("Persistent");
    case TaskColumn::sent: return tr("Sent");
    case TaskColumn::critical: return tr("Path");
    default: return {};
  }
}

}  // namespace turnpoint::views
