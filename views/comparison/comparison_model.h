// SPDX-License-Identifier: Apache-2.0
// What the chart shows, as figures: a row per method with its best plan that fits, its turning point, its least memory.
#pragma once

#include <QAbstractTableModel>
#include <QPalette>
#include <optional>
#include <vector>

#include "views/frontier/chart_data.h"

namespace turnpoint::views {

class ComparisonModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  /// Sessions keep these numbers; which stands where is the view's.
  enum Column {
    method,
    plans,
    memory,
    time,
    against_best,
    network,
    turning,
    least,
    answer,
    clock,
    communication,
    kColumns
  };
  enum Role { SortRole = Qt::UserRole, MethodRole, FrontierRole };
  using QAbstractTableModel::QAbstractTableModel;

  void set_data(const ChartData& data);
  void set_palette(const QPalette& palette);

  int row_of(const std::string& name) const;  ///< -1: not there
  /// What picking the row picks: the fastest plan that fits, the one of least memory where none does.
  std::optional<std::size_t> plan_of(int row) const;
  const ChartSeries& series(int row) const { return rows_[std::size_t(row)].series; }
  /// Row of the fastest plan of all that fit; -1: nothing fits.
  int best_row() const { return best_; }

  int rowCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : int(rows_.size()); }
  int columnCount(const QModelIndex& parent = {}) const override { return parent.isValid() ? 0 : int(kColumns); }
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    ChartSeries series;
    std::optional<std::size_t> fastest;  ///< that fits
    std::size_t least = 0;               ///< of least memory
    friend bool operator==(const Row&, const Row&) = default;
  };
  QString text(const Row& row, int column) const;
  QString tool_tip(const Row& row, int column) const;
  QVariant sort_value(const Row& row, int column) const;
  double best_time() const;

  std::vector<Row> rows_;
  std::int64_t memory_limit_ = 0;
  int best_ = -1;
  QPalette palette_;
};

}  // namespace turnpoint::views
