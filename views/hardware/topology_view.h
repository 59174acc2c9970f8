// SPDX-License-Identifier: Apache-2.0
// What joins the GPUs of a measured host: a small matrix, each cell explained where the pointer rests, with a legend of
// what stands in it.
#pragma once

#include <QAbstractTableModel>
#include <QWidget>
#include <vector>

#include "core/hardware/host_topology.h"

class QTableView;

namespace turnpoint::views {

class NoteLabel;

/// A row per GPU: how it reaches every GPU, then its NVLinks, NUMA node and nearest cores.
class TopologyModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  using QAbstractTableModel::QAbstractTableModel;
  void set_topology(HostTopology topology);
  const HostTopology& topology() const { return topology_; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  /// "3" for "GPU3" above the columns and links without their rate, where there is little room.
  void set_short(bool shortly);
  bool is_short() const { return short_; }

 private:
  enum Extra { nvlinks, numa, cores, kExtras };
  int gpus() const { return static_cast<int>(topology_.gpus.size()); }
  HostTopology topology_;
  bool short_ = false;
};

class TopologyView : public QWidget {
  Q_OBJECT
 public:
  explicit TopologyView(QWidget* parent = nullptr);
  void set_topology(HostTopology topology);
  QTableView* table() const { return table_; }
  QString legend() const;   ///< the words below the matrix
  int least_width() const;  ///< at which nothing scrolls or ends in dots

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  std::vector<int> column_widths(int pad) const;
  void fit_columns();  ///< as wide as there is room for: matrices of eight GPUs do not scroll
  TopologyModel* model_;
  QTableView* table_;
  NoteLabel* legend_;
};

/// "NV4, SYS": the different ways between its GPUs.
QString ways_text(const HostTopology& topology);

}  // namespace turnpoint::views
