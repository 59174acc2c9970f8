// SPDX-License-Identifier: Apache-2.0
// Two plans beside each other as a table: all layers, each layer that costs otherwise with the parts of its difference,
// and what is treated otherwise, in words.
#pragma once

#include <QStandardItemModel>
#include <memory>
#include <set>

#include "core/plan/plan_difference.h"

namespace turnpoint::views {

class DifferenceModel : public QStandardItemModel {
  Q_OBJECT
 public:
  enum Column { layer, time, memory, computing, again, weights, activations, host, waiting, kColumns };

  explicit DifferenceModel(QObject* parent = nullptr);

  /// Null: nothing. `model`: of the first plan.
  void set_difference(std::shared_ptr<const PlanDifference> difference, const ModelPtr& model);
  const PlanDifference* difference() const { return difference_.get(); }
  /// What a row is about; empty: the heading, or all.
  std::set<OperatorId> operators_of(const QModelIndex& row) const;
  /// Rows whose first column needs the whole width: what changes, below the row with this index; -1: nothing changes.
  int changes_row() const { return changes_row_; }
  /// Columns of parts that no layer differs in.
  bool is_empty(int column) const;

 private:
  std::shared_ptr<const PlanDifference> difference_;
  ModelPtr model_;
  int changes_row_ = -1;
};

/// "+12 ms", a dash where there is no difference.
QString signed_time(double seconds, double beside);
QString signed_memory(std::int64_t bytes);

}  // namespace turnpoint::views
