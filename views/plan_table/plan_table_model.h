// SPDX-License-Identifier: Apache-2.0
// Qt's view of PlanRows: a tree of layers and operators with their figures.
#pragma once

#include <QAbstractItemModel>
#include <QPalette>
#include <memory>

#include "views/common/configuration_colors.h"
#include "views/common/format.h"
#include "views/plan_table/plan_rows.h"

namespace turnpoint::views {

class PlanTableModel : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { name, kind, configuration, layout, choice, memory, compute, network, reshard, share, kColumns };
  enum Role { SortRole = Qt::UserRole, ColorRole, KeyRole, SearchRole };
  using QAbstractItemModel::QAbstractItemModel;

  /// `figures` null: structure only. Keeps the indexes where the rows are the same as before.
  void set_data(ModelPtr model, std::shared_ptr<const Hierarchy> hierarchy, PlanFiguresPtr figures,
                std::shared_ptr<const ConfigurationColors> colors);
  void set_palette(const QPalette& palette);
  void set_hovered(OperatorId op);

  const PlanRows& rows() const { return rows_; }
  const PlanRow& row_at(const QModelIndex& index) const {
    return rows_.rows[static_cast<std::size_t>(index.internalId())];
  }
  QModelIndex index_of(int row, int column = 0) const;
  double largest_share() const { return largest_share_; }

  QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  QModelIndex parent(const QModelIndex& child) const override;
  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& = {}) const override { return kColumns; }
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  ModelPtr model_;
  std::shared_ptr<const Hierarchy> hierarchy_;
  PlanFiguresPtr figures_;
  std::shared_ptr<const ConfigurationColors> colors_;
  QPalette palette_;
  PlanRows rows_;
  double largest_share_ = 0;
  TimeUnit time_unit_;
  ByteUnit byte_unit_;
  int hovered_ = -1;

  QString text(const PlanRow& row, int column) const;
  QVariant sort_value(const PlanRow& row, int column) const;
};

}  // namespace turnpoint::views
