// SPDX-License-Identifier: Apache-2.0
// The values of one report, or of two, as a table.
#pragma once

#include <QAbstractTableModel>
#include <QPalette>

#include "views/validation/validation_content.h"

namespace turnpoint::views {

class ValidationModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { name, part, predicted, measured, error, source, other_measured, other_error, spread, kColumns };
  enum Role { SortRole = Qt::UserRole };
  using QAbstractTableModel::QAbstractTableModel;

  void set_content(ValidationContentPtr content);
  void set_palette(const QPalette& palette);
  const ValidationRow& row(int at) const { return content_->rows[static_cast<std::size_t>(at)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : int(kColumns); }
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  static QString text(const ValidationRow& row, int column);
  static QVariant sort_value(const ValidationRow& row, int column);

  ValidationContentPtr content_;
  QPalette palette_;
};

}  // namespace turnpoint::views
