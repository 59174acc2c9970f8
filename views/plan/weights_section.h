// SPDX-License-Identifier: Apache-2.0
// How the weights of the picked plan are updated, in the Plan dock: what sharding the updates saves, and each weight
// with the reason of its decision.
#pragma once

#include <QWidget>
#include <vector>

#include "core/plan/weight_update.h"

class QGridLayout;
class QLabel;
class QStandardItemModel;
class QTreeView;

namespace turnpoint::views {

class BreakdownBar;
class SectionHead;

class WeightsSection : public QWidget {
  Q_OBJECT
 public:
  static constexpr int kShown = 8;  ///< weights, until all are asked for

  explicit WeightsSection(QWidget* parent = nullptr);
  void set_weights(std::vector<WeightUpdate> weights);  ///< none: the section hides
  QTreeView* table() const { return table_; }
  QString text() const;  ///< of both bars and the rows on show, a line each

 protected:
  void changeEvent(QEvent* event) override;

 signals:
  void weight_picked(const QString& name);

 private:
  struct Row {
    QLabel *name = nullptr, *figure = nullptr;
    BreakdownBar* bar = nullptr;
  };
  Row add_row(QGridLayout* grid, int at, const QString& name);
  void show_weights();

  SectionHead* head_;
  Row whole_, chosen_;
  QTreeView* table_;
  QStandardItemModel* rows_;
  std::vector<WeightUpdate> weights_;  ///< the longest first
  bool all_ = false;
};

}  // namespace turnpoint::views
