// SPDX-License-Identifier: Apache-2.0
#include "views/validation/validation_model.h"

#include <QFont>
#include <cmath>

#include "views/common/theme_colors.h"

namespace turnpoint::views {

namespace {

bool is_text(int column) {
  return column == ValidationModel::name || column == ValidationModel::part || column == ValidationModel::source;
}

/// The source stands behind figures, which end at the right.
bool left_aligned(int column) { return column == ValidationModel::name || column == ValidationModel::part; }

QString short_part_text(ValidationPart part, bool placement) {
  switch (part) {
    case ValidationPart::memory: return ValidationModel::tr("Memory");
    case ValidationPart::operators: return ValidationModel::tr("Operator");
    case ValidationPart::collectives:
      return placement ? ValidationModel::tr("Transfer") : ValidationModel::tr("Collective");
    default: return part_text(part, placement);
  }
}

/// What stands in a column of the other report is asked of that one.
const std::optional<ComparedValue>& asked(const ValidationRow& row, int column) {
  const bool other = column == ValidationModel::other_measured || column == ValidationModel::other_error;
  return other ? row.other : row.value;
}

}  // namespace

void ValidationModel::set_content(ValidationContentPtr content) {
  beginResetModel();
  content_ = std::move(content);
  endResetModel();
}

void ValidationModel::set_palette(const QPalette& palette) {
  palette_ = palette;
  if (rowCount() > 0) emit dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
}

int ValidationModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() || !content_ ? 0 : static_cast<int>(content_->rows.size());
}

QString ValidationModel::text(const ValidationRow& row, int column) {
  if (column == name) return row.name;
  if (column == part) return short_part_text(row.part, row.placement);
  const auto& value = asked(row, column);
  if (!value) return {};
  switch (column) {
    case predicted: return value_text(row, value->predicted);
    case measured:
    case other_measured: return value->measured ? value_text(row, *value->measured) : QString();
    case error:
    case other_error: return value->measured ? error_text(*value, row.bytes()) : QString();
    case spread:
      return value->measured && value->q3 > value->q1
                 ? value_text(row, value->q1) + QStringLiteral(" \u2013 ") + value_text(row, value->q3)
                 : QString();
    case source: return source_text(*value);
    default: return {};
  }
}

/// Seconds before bytes, and what there is before what there is not.
QVariant ValidationModel::sort_value(const ValidationRow& row, int column) {
  if (is_text(column)) return column == part ? QVariant(static_cast<int>(row.part)) : QVariant(text(row, column));
  const auto& value = asked(row, column);
  if (!value) return -2.0;
  switch (column) {
    case predicted: return value->predicted;
    case measured:
    case other_measured: return value->measured.value_or(-1);
    case error:
    case other_error: {
      const auto error = value->error();
      return error ? std::abs(*error) : -1.0;
    }
    case spread: return value->measured ? value->q3 - value->q1 : -1.0;
    default: return {};
  }
}

QVariant ValidationModel::data(const QModelIndex& index, int role) const {
  if (!content_ || !index.isValid()) return {};
  const ValidationRow& here = row(index.row());
  const ThemeColors& colors = theme_colors(palette_);
  const auto& value = asked(here, index.column());
  const bool is_error = index.column() == error || index.column() == other_error;
  const auto off = is_error && value ? value->error() : std::nullopt;
  const bool large = off && std::abs(*off) > kLargeError;
  switch (role) {
    case Qt::DisplayRole: return text(here, index.column());
    case Qt::ToolTipRole:
      if (index.column() == name) return here.name;
      if (value && !value->measured && index.column() != part) return tr("Not measured here: modelled");
      return {};
    case Qt::TextAlignmentRole:
      return int(Qt::AlignVCenter | (left_aligned(index.column()) ? Qt::AlignLeft : Qt::AlignRight));
    case Qt::ForegroundRole:
      if (large) return colors.warning;
      if (index.column() == part || index.column() == spread || index.column() == source ||
          index.column() == other_measured || index.column() == other_error)
        return colors.secondary;
      return colors.text;
    case Qt::FontRole:
      if (large) {
        QFont bold;
        bold.setBold(true);
        return bold;
      }
      return {};
    case SortRole: return sort_value(here, index.column());
    default: return {};
  }
}

QVariant ValidationModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole)
    return int(Qt::AlignVCenter | (left_aligned(section) ? Qt::AlignLeft : Qt::AlignRight));
  static const char* const kNames[] = {
      QT_TR_NOOP("Name"),          QT_TR_NOOP("Part"),   QT_TR_NOOP("Predicted"), QT_TR_NOOP("Measured"),
      QT_TR_NOOP("Prediction is"), QT_TR_NOOP("Source"), QT_TR_NOOP("Compared"),  QT_TR_NOOP("Its prediction is"),
      QT_TR_NOOP("Quartiles")};
  static const char* const kTips[] = {
      QT_TR_NOOP("An operator, a collective, a kind of memory; a click picks the operator in all views"),
      QT_TR_NOOP("What the value is part of"),
      QT_TR_NOOP("By the cost model"),
      QT_TR_NOOP("Least of the timed steps on CPU ranks, median on GPUs; memory as the allocator counted it"),
      QT_TR_NOOP("Of the prediction, relative to the measured value"),
      QT_TR_NOOP("What was not measured here is modelled"),
      QT_TR_NOOP("Measured in the other report"),
      QT_TR_NOOP("Error of the other report's prediction"),
      QT_TR_NOOP("First and third quartile of the timed steps")};
  if (role == Qt::DisplayRole) return tr(kNames[section]);
  if (role == Qt::ToolTipRole) return tr(kTips[section]);
  return {};
}

}  // namespace turnpoint::views
