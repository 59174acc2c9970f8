// SPDX-License-Identifier: Apache-2.0
// The right dock: the picked point, where its memory and time go, its most expensive reshardings, the selected
// operator.
#pragma once

#include <QScrollArea>
#include <functional>
#include <memory>
#include <optional>

#include "core/plan/result.h"
#include "core/validation/validation_report.h"
#include "views/plan/reshard_model.h"

class QBoxLayout;
class QGridLayout;
class QLabel;
class QPushButton;
class QStackedWidget;
class QToolButton;
class QTreeView;
class QVBoxLayout;

namespace turnpoint::views {

class BreakdownBar;
class LayersSection;
class LegendTable;
class SectionHead;
class WeightsSection;
class SelectionModel;
class ValidatedSection;

class PlanPanel : public QScrollArea {
  Q_OBJECT
 public:
  explicit PlanPanel(QWidget* parent = nullptr);

  void set_selection(SelectionModel* selection);
  /// The point's figures are there at once; its plan follows by set_plan. A null result empties the panel.
  void set_point(ResultPtr result, std::size_t index, const QString& method_title, bool coarse);
  /// What stands in an empty panel.
  void set_empty_text(const QString& text);
  /// How the point's memory and time are written: as the chart beside the panel writes them, so that one number looks
  /// the same everywhere. At first each in the unit that suits it alone.
  void set_figures(std::function<QString(std::int64_t)> memory, std::function<QString(double)> time);
  void refresh_figures();  ///< they are written in another way now
  /// `whole_updates`: as the plan's own result says (Result::whole_updates).
  void set_plan(std::shared_ptr<const Plan> plan, ScenarioPtr scenario,
                const std::optional<CostBreakdown>& whole_updates = {});
  /// A ratio plan with its levels as axes (core/plan/ratio_plan.h).
  void set_ratio(RatioPlanPtr ratio, std::shared_ptr<const Plan> as_axes, ScenarioPtr scenario,
                 const std::optional<CostBreakdown>& whole_updates = {});
  /// A placement's in the place of a plan. Null: the point has none, or none yet.
  void set_placement(PlacementPlanPtr placement, ScenarioPtr scenario);
  /// Most bytes that a device holds at once in the simulated schedule of the plan on show; nothing while it is not
  /// known.
  void set_peak(std::optional<std::int64_t> bytes);
  /// The newest report of a run of the picked plan; null: none, and `how` says how to get one.
  void set_validation(std::shared_ptr<const ValidationReport> report, const QString& how);
  QPushButton* export_button() const { return export_; }
  QPushButton* validate_button() const { return validate_; }
  QPushButton* why_button() const { return why_; }
  ValidatedSection* validated() const { return validated_; }
  ReshardModel* reshard_model() { return &reshards_; }

 signals:
  /// `every`: to the very next plan, however near; else to the next that looks different.
  void step_requested(int steps, bool every);
  void report_wanted();

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fit_halves();  ///< compute and network side by side, or where that would cut names, one below the other
  void fit_head();    ///< the figures as large as the panel's width lets them be
  void build_head(QVBoxLayout* column);
  void build_bars(QVBoxLayout* column);
  void build_lists(QVBoxLayout* column);
  void show_point();
  void show_bars();
  void show_notes();
  void show_peak();
  QString part_text(std::int64_t bytes) const;  ///< in the unit of the whole, unless it is too small for that
  std::int64_t passing_bytes() const;
  std::optional<std::int64_t> peak_of_point() const;
  void show_operator();
  void show_reshards();
  void pick_weight(const QString& name);
  void show_kind();  ///< which sections a plan or a placement has
  void show_placement();
  void show_task();
  void clear_facts();
  void add_fact(int row, const QString& name, const QString& value);

  SelectionModel* selection_ = nullptr;
  std::function<QString(std::int64_t)> memory_of_;
  std::function<QString(double)> time_of_;
  ResultPtr result_;
  std::size_t index_ = 0;
  QString method_title_;
  bool coarse_ = false;
  std::shared_ptr<const Plan> plan_;
  RatioPlanPtr ratio_;  ///< plan_ are its axes
  PlacementPlanPtr placement_;
  ScenarioPtr scenario_;
  std::optional<CostBreakdown> whole_updates_;  ///< the plan's

  QStackedWidget* pages_ = nullptr;
  QLabel *memory_ = nullptr, *time_ = nullptr, *where_ = nullptr, *words_ = nullptr, *no_reshards_ = nullptr;
  QLabel* notes_ = nullptr;         ///< what limits the figures
  QLabel* explanations_ = nullptr;  ///< what the method decided
  QLabel* empty_ = nullptr;
  QLabel* peak_ = nullptr;  ///< under the memory bar
  std::optional<std::int64_t> peak_bytes_;
  QToolButton *previous_ = nullptr, *next_ = nullptr;
  SectionHead *memory_head_ = nullptr, *time_head_ = nullptr, *reshard_head_ = nullptr, *operator_head_ = nullptr;
  BreakdownBar *memory_bar_ = nullptr, *time_bar_ = nullptr;
  LegendTable *memory_legend_ = nullptr, *compute_legend_ = nullptr, *network_legend_ = nullptr,
              *stage_legend_ = nullptr;
  QBoxLayout* halves_ = nullptr;
  SectionHead* stage_head_ = nullptr;
  QLabel* placement_words_ = nullptr;
  ValidatedSection* validated_ = nullptr;
  QPushButton *export_ = nullptr, *validate_ = nullptr, *why_ = nullptr;
  ReshardModel reshards_;
  QTreeView* reshard_view_ = nullptr;
  LayersSection* layers_ = nullptr;
  WeightsSection* weights_ = nullptr;
  QGridLayout* facts_ = nullptr;
};

}  // namespace turnpoint::views
