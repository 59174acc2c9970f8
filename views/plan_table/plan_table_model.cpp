// SPDX-License-Identifier: Apache-2.0
#include "views/plan_table/plan_table_model.h"

#include <QFont>
#include <algorithm>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/common/theme_colors.h"
#include "views/graph/hover_text.h"

namespace turnpoint::views {

namespace {

/// Memory is in MiB unless everything is less than one.
bool smaller_unit(const ByteUnit& a, const ByteUnit& b) { return a.bytes < b.bytes; }

bool same_shape(const PlanRows& a, const PlanRows& b) {
  return a.top == b.top && a.rows.size() == b.rows.size() &&
         std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), [](const PlanRow& x, const PlanRow& y) {
           return x.parent == y.parent && x.key == y.key && x.copies == y.copies && x.op.valid() == y.op.valid();
         });
}

}  // namespace

void PlanTableModel::set_data(ModelPtr model, std::shared_ptr<const Hierarchy> hierarchy, PlanFiguresPtr figures,
                              std::shared_ptr<const ConfigurationColors> colors) {
  PlanRows rows = model ? make_plan_rows(*model, *hierarchy, figures.get()) : PlanRows{};
  const bool same = same_shape(rows, rows_);
  if (!same) beginResetModel();
  model_ = std::move(model);
  hierarchy_ = std::move(hierarchy);
  figures_ = std::move(figures);
  colors_ = std::move(colors);
  rows_ = std::move(rows);
  hovered_ = -1;
  largest_share_ = 0;
  double longest = 0, largest = 0;
  for (const int top : rows_.top) {
    const PlanRow& row = rows_.rows[static_cast<std::size_t>(top)];
    largest_share_ = std::max(largest_share_, row.share);
    longest = std::max({longest, row.compute_s, row.network_s, row.reshard_s});
    largest = std::max(largest, static_cast<double>(row.memory_bytes));
  }
  const TimeUnit time_unit = figures_ ? time_unit_for(longest) : TimeUnit();
  const ByteUnit byte_unit = figures_ ? std::min(byte_unit_for(largest), ByteUnit(), smaller_unit) : ByteUnit();
  const bool other_units = time_unit.name != time_unit_.name || byte_unit.name != byte_unit_.name;
  time_unit_ = time_unit;
  byte_unit_ = byte_unit;
  if (!same) {
    endResetModel();
    return;
  }
  if (other_units) emit headerDataChanged(Qt::Horizontal, memory, reshard);
  // One range per parent, as the interface of models wants it.
  const auto tell = [this](const std::vector<int>& children) {
    if (!children.empty()) emit dataChanged(index_of(children.front(), 0), index_of(children.back(), kColumns - 1));
  };
  tell(rows_.top);
  for (const PlanRow& row : rows_.rows) tell(row.children);
}

void PlanTableModel::set_palette(const QPalette& palette) {
  palette_ = palette;
  if (!rows_.top.empty()) emit dataChanged(index_of(rows_.top.front(), 0), index_of(rows_.top.back(), kColumns - 1));
}

void PlanTableModel::set_hovered(OperatorId op) {
  const int row = op.valid() && op.index < rows_.row_of.size() ? rows_.row_of[op] : -1;
  if (row == hovered_) return;
  const int old = hovered_;
  hovered_ = row;
  for (const int changed : {old, row})
    if (changed >= 0) emit dataChanged(index_of(changed, 0), index_of(changed, kColumns - 1), {Qt::BackgroundRole});
}

QModelIndex PlanTableModel::index_of(int row, int column) const {
  return createIndex(rows_.rows[static_cast<std::size_t>(row)].place, column, static_cast<quintptr>(row));
}

QModelIndex PlanTableModel::index(int row, int column, const QModelIndex& parent) const {
  if (!hasIndex(row, column, parent)) return {};
  const auto& siblings = parent.isValid() ? row_at(parent).children : rows_.top;
  return createIndex(row, column, static_cast<quintptr>(siblings[static_cast<std::size_t>(row)]));
}

QModelIndex PlanTableModel::parent(const QModelIndex& child) const {
  if (!child.isValid() || row_at(child).parent < 0) return {};
  return index_of(row_at(child).parent);
}

int PlanTableModel::rowCount(const QModelIndex& parent) const {
  if (parent.isValid() && parent.column() != 0) return 0;
  return static_cast<int>(parent.isValid() ? row_at(parent).children.size() : rows_.top.size());
}

QString PlanTableModel::text(const PlanRow& row, int column) const {
  switch (column) {
    case name: return row.name;
    case kind: return row.op.valid() ? kind_text(model_->operators[row.op].kind) : tr("group");
    default: break;
  }
  if (!figures_) return {};
  switch (column) {
    case configuration:
      return row.configurations == 1 ? figures_->configurations[row.configuration].text
                                     : tr("%1 configurations").arg(row.configurations);
    case layout: return row.op.valid() ? figures_->output_layout(row.op) : QString();
    case choice: return row.choice;
    case memory: return figure_text(static_cast<double>(row.memory_bytes) / byte_unit_.bytes);
    case compute: return figure_text(row.compute_s * time_unit_.per_second);
    case network: return figure_text(row.network_s * time_unit_.per_second);
    case reshard: return figure_text(row.reshard_s * time_unit_.per_second);
    case share:
      if (row.share == 0) return QStringLiteral("0%");
      if (row.share < 0.0005) return QStringLiteral("<0.1%");
      return QLocale().toString(row.share * 100, 'f', row.share < 0.0995 ? 1 : 0) + QLatin1Char('%');
    default: return {};
  }
}

QVariant PlanTableModel::sort_value(const PlanRow& row, int column) const {
  switch (column) {
    case memory: return static_cast<qint64>(row.memory_bytes);
    case compute: return row.compute_s;
    case network: return row.network_s;
    case reshard: return row.reshard_s;
    case share: return row.share;
    default: return text(row, column);
  }
}

QVariant PlanTableModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const PlanRow& row = row_at(index);
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole: return text(row, column);
    case SortRole: return column == share ? QVariant(row.share) : sort_value(row, column);
    case KeyRole: return row.key;
    case SearchRole: {
      QString words = row.key + QLatin1Char('\n') + text(row, kind) + QLatin1Char('\n') + text(row, layout) +
                      QLatin1Char('\n') + text(row, choice);
      if (row.op.valid())
        words +=
            QLatin1Char('\n') + to_qt(model_->operators[row.op].detail) + QLatin1Char('\n') + text(row, configuration);
      return words;
    }
    case ColorRole:
      if (column != configuration || !figures_ || row.configurations != 1) return {};
      return theme_colors(palette_)
          .configuration[static_cast<std::size_t>(colors_->slot(figures_->configurations[row.configuration].text))];
    case Qt::TextAlignmentRole:
      return QVariant(column >= memory && column < share ? Qt::AlignRight | Qt::AlignVCenter
                                                         : Qt::AlignLeft | Qt::AlignVCenter);
    case Qt::FontRole: {
      QFont font;
      if (row.op.valid() || column != name) return {};
      font.setBold(true);
      return font;
    }
    case Qt::ForegroundRole:
      // Zero is there, but does not shout.
      if (column >= memory && column < share && sort_value(row, column).toDouble() == 0)
        return theme_colors(palette_).disabled;
      return column == kind || column == layout || column == choice ? QVariant(theme_colors(palette_).secondary)
                                                                    : QVariant();
    case Qt::BackgroundRole:
      return static_cast<int>(index.internalId()) == hovered_ ? QVariant(theme_colors(palette_).accent_background)
                                                              : QVariant();
    case Qt::ToolTipRole: {
      if (column == share && figures_)
        return tr("%1 of the iteration: %2").arg(text(row, share), seconds_text(row.share * figures_->time_s));
      QString tip = row.op.valid() ? row.key
                                   : tr("%1 \u00b7 %2")
                                         .arg(row.name, counted(double(row.operators.size()) / row.copies,
                                                                tr("1 operator"), tr("%1 operators")));
      if (row.copies > 1)
        tip += tr(", and %1 equal ones; figures are of all %2 together").arg(row.copies - 1).arg(row.copies);
      return column >= configuration && column <= choice ? text(row, column) : tip;
    }
    default: return {};
  }
}

QVariant PlanTableModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return QVariant(section >= memory && section < share ? Qt::AlignRight | Qt::AlignVCenter
                                                         : Qt::AlignLeft | Qt::AlignVCenter);
  if (role == Qt::ToolTipRole) {
    switch (section) {
      case choice:
        return tr("What backward computes again, who updates the parameters, where the optimizer state lives");
      case memory: return tr("Memory of one device, with the copies kept for its inputs");
      case network: return tr("Synchronisation of gradients");
      case reshard: return tr("Bringing its inputs into the layout it reads, forward and backward");
      case share: return tr("Of the iteration's time, all equal ones together");
      default: return {};
    }
  }
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case name: return tr("Operator");
    case kind: return tr("Kind");
    case configuration: return tr("Configuration");
    case layout: return tr("Output layout");
    case choice: return tr("Memory choice");
    case memory: return byte_unit_.name;
    case compute: return tr("Compute %1").arg(time_unit_.name);
    case network: return tr("Network %1").arg(time_unit_.name);
    case reshard: return tr("Reshard %1").arg(time_unit_.name);
    case share: return tr("Share of time");
    default: return {};
  }
}

}  // namespace turnpoint::views
