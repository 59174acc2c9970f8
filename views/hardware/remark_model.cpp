// SPDX-License-Identifier: Apache-2.0
#include "views/hardware/remark_model.h"

#include "views/common/theme_colors.h"

namespace turnpoint::views {

void RemarkModel::set_content(HardwareContentPtr content) {
  beginResetModel();
  content_ = std::move(content);
  endResetModel();
}

void RemarkModel::set_palette(const QPalette& palette) {
  palette_ = palette;
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1), {Qt::ForegroundRole});
}

const RemarkRow* RemarkModel::row_at(int row) const {
  if (!content_ || row < 0 || static_cast<std::size_t>(row) >= content_->remarks.size()) return nullptr;
  return &content_->remarks[static_cast<std::size_t>(row)];
}

int RemarkModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !content_ ? 0 : static_cast<int>(content_->remarks.size());
}

int RemarkModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant RemarkModel::data(const QModelIndex& index, int role) const {
  const RemarkRow* row = row_at(index.row());
  if (!row) return {};
  const bool warning = row->kind == RemarkRow::Kind::warning;
  if (role == Qt::ToolTipRole) return row->text() + u'\n' + tr("Double click copies this line");
  if (role == Qt::TextAlignmentRole)
    return QVariant(index.column() == line ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == Qt::ForegroundRole) {
    const ThemeColors& colors = theme_colors(palette_);
    if (index.column() == what) return warning ? colors.warning : colors.text;
    return colors.secondary;
  }
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case file: return row->path.isEmpty() ? tr("profile") : row->file();
    case line: return row->line > 0 ? QString::number(row->line) : QString();
    case what: return warning ? QStringLiteral("\u26a0 ") + row->what : row->what;
    default: return {};
  }
}

QVariant RemarkModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section == line ? Qt::AlignRight | Qt::AlignVCenter : Qt::AlignLeft | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case file: return tr("File");
    case line: return tr("Line");
    case what: return tr("What");
    default: return {};
  }
}

}  // namespace turnpoint::views
