// SPDX-License-Identifier: Apache-2.0
// The most expensive reshardings of a plan; equal ones of repeated layers fold into one row.
#pragma once

#include <QAbstractTableModel>
#include <set>
#include <vector>

#include "core/model/model.h"
#include "core/plan/plan.h"
#include "views/common/format.h"

namespace turnpoint::views {

struct ReshardRow {
  QString tensor;      ///< "mlp/fc2 -> add" with the fold count
  QString collective;  ///< of the step that costs most
  double bytes = 0;    ///< of each, in all micro-batches
  double time_s = 0;   ///< of all together
  int count = 1;
  QString tool_tip;
  std::set<OperatorId> operators;
};

/// Sorted by falling time.
std::vector<ReshardRow> fold_reshards(const Plan& plan, const Model& model);

class ReshardModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kTensor, kCollective, kBytes, kTime, kColumns };
  enum Role { kHeatRole = Qt::UserRole };  ///< rank of its bytes, 0 to 1
  using QAbstractTableModel::QAbstractTableModel;

  /// Each column in the unit that its largest figure asks for.
  void set_rows(std::vector<ReshardRow> rows, std::size_t shown);
  const std::vector<ReshardRow>& rows() const { return rows_; }
  std::size_t total() const { return total_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<ReshardRow> rows_;
  TimeUnit unit_;
  ByteUnit byte_unit_;
  std::size_t total_ = 0;
};

}  // namespace turnpoint::views
