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
  /// What a plan costs, and with every update whole, as its own result says; `stages`: its pipeline has several. The
  /// bars are there while this plan is of the result that `set_weights` spoke of, whichever of both comes first.
  void set_step(const CostBreakdown& cost, const std::optional<CostBreakdown>& whole_updates, bool stages);
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
  std::vector<WeightUpdate> weights_;                           ///< the longest first
  std::optional<CostBreakdown> whole_step_;                     ///< of the result
  std::optional<CostBreakdown> chosen_step_, whole_of_chosen_;  ///< of the plan
  bool stages_ = false, all_ = false;
};

}  // namespace turnpoint::views
