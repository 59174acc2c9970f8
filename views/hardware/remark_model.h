// SPDX-License-Identifier: Apache-2.0
// What is wrong or noteworthy about a profile and its files: file, line, what; warnings first.
#pragma once

#include <QAbstractTableModel>
#include <QPalette>

#include "views/hardware/hardware_content.h"

namespace turnpoint::views {

class RemarkModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { file, line, what, kColumns };

  using QAbstractTableModel::QAbstractTableModel;
  void set_content(HardwareContentPtr content);
  void set_palette(const QPalette& palette);
  const RemarkRow* row_at(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  HardwareContentPtr content_;
  QPalette palette_;
};

}  // namespace turnpoint::views
