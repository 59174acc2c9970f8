// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/methods_model.h"

#include <algorithm>

namespace turnpoint::views {

void MethodsModel::set_rows(std::vector<MethodRow> rows) {
  const bool same = rows.size() == rows_.size() &&
                    std::equal(rows.begin(), rows.end(), rows_.begin(),
                               [](const MethodRow& a, const MethodRow& b) { return a.name == b.name; });
  if (!same) {
    beginResetModel();
    rows_ = std::move(rows);
    endResetModel();
    return;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] == rows_[i]) continue;
    rows_[i] = std::move(rows[i]);
    const QModelIndex changed = index(static_cast<int>(i));
    emit dataChanged(changed, changed);
  }
}

int MethodsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

QVariant MethodsModel::data(const QModelIndex& index, int role) const {
  if (!checkIndex(index, CheckIndexOption::IndexIsValid | CheckIndexOption::ParentIsInvalid)) return {};
  const MethodRow& row = rows_[static_cast<std::size_t>(index.row())];
  switch (role) {
    case Qt::DisplayRole: return row.title;
    case Qt::ToolTipRole:
      return (row.notes.isEmpty() ? row.tool_tip : row.notes + u'\n' + row.tool_tip) +
             (row.has_settings ? u'\n' + tr("Double-click: its settings") : QString());
    case Qt::CheckStateRole: return row.enabled ? Qt::Checked : Qt::Unchecked;
    case Qt::AccessibleTextRole:
      return row.title + QStringLiteral(", ") + row.status +
             (row.notes.isEmpty() ? QString() : QStringLiteral(". ") + row.notes);
    case kNameRole: return row.name;
    case kStateRole: return static_cast<int>(row.state);
    case kStatusRole: return row.status;
    case kFractionRole: return row.fraction;
    case kFrontierRole: return row.frontier;
    case kNotesRole: return row.notes;
    case kSettingsRole: return row.has_settings;
    default: return {};
  }
}

bool MethodsModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::CheckStateRole || !checkIndex(index, CheckIndexOption::IndexIsValid)) return false;
  emit method_toggled(rows_[static_cast<std::size_t>(index.row())].name, value.toInt() == Qt::Checked);
  return true;
}

Qt::ItemFlags MethodsModel::flags(const QModelIndex& index) const {
  if (!index.isValid()) return Qt::NoItemFlags;
  return Qt::ItemIsEnabled | Qt::ItemIsSelectable | Qt::ItemIsUserCheckable | Qt::ItemNeverHasChildren;
}

}  // namespace turnpoint::views
