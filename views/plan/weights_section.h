// SPDX-License-Identifier: Apache-2.0
// How the weights of the picked plan are updated, in the Plan dock: the step and the updates alone, with every update
// whole and as it was decided, and each weight with the reason of its decision.
#pragma once

#include <QWidget>
#include <optional>
#include <vector>

#include "core/cost/breakdown.h"
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
  /// None: the section hides. `whole_updates`: of the plan with every update whole; not known: no bars of the step.
  void set_weights(std::vector<WeightUpdate> weights, std::optional<CostBreakdown> whole_updates);
  /// What the plan costs, which those bars are of, too; `stages`: its pipeline has several.
  void set_step(const CostBreakdown& cost, bool stages);
  QTreeView* table() const { return table_; }
  QString text() const;  ///< of the bars and the rows on show, a line each

 protected:
  void changeEvent(QEvent* event) override;

 signals:
  void weight_picked(const QString& name);

 private:
  struct Row {
    QLabel *name = nullptr, *figure = nullptr;
    BreakdownBar* bar = nullptr;
  };
  /// Two bars on one scale, under a caption.
  struct Bars {
    QLabel* caption = nullptr;
    Row whole, chosen;
  };
  Bars add_bars(QGridLayout* grid, const QString& caption);
  Row add_row(QGridLayout* grid, const QString& name, const QString& caption);
  void show_step();
  void show_updates();
  void show_weights();

  SectionHead* head_;
  Bars step_, updates_;
  QTreeView* table_;
  QStandardItemModel* rows_;
  std::vector<WeightUpdate> weights_;  ///< the longest first
  std::optional<CostBreakdown> whole_step_, chosen_step_;
  bool stages_ = false, all_ = false;
};

}  // namespace turnpoint::views
