// SPDX-License-Identifier: Apache-2.0
// What the panel shows of a placement.
#include <QGridLayout>
#include <QLabel>
#include <QTreeView>
#include <algorithm>

#include "views/common/format.h"
#include "views/common/section_head.h"
#include "views/common/selection_model.h"
#include "views/common/theme_colors.h"
#include "views/graph/device_palette.h"
#include "views/plan/breakdown_bar.h"
#include "views/plan/layers_section.h"
#include "views/plan/legend_table.h"
#include "views/plan/placement_words.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::views {

void PlanPanel::set_placement(PlacementPlanPtr placement, ScenarioPtr scenario) {
  plan_ = nullptr;
  ratio_ = nullptr;
  placement_ = std::move(placement);
  scenario_ = std::move(scenario);
  show_kind();
  if (placement_)
    show_placement();
  else
    show_bars();
  show_operator();
}

void PlanPanel::show_kind() {
  const bool placed = placement_ || (result_ && result_->plans && result_->plans->kind(index_) == PlanKind::placement);
  for (QWidget* part : {static_cast<QWidget*>(stage_head_), static_cast<QWidget*>(stage_legend_)})
    part->setVisible(placed && placement_ && !placement_->stages.empty());
  // What the halves of a ratio plan's cuts exchange is part of their operators' network time.
  const bool reshards = !placed && !ratio_;
  reshard_head_->setVisible(reshards);
  if (!reshards) {
    reshard_view_->hide();
    no_reshards_->hide();
  }
  const bool by_layer = plan_ && scenario_ && reshards;
  layers_->set_plan(by_layer ? plan_ : nullptr, by_layer ? scenario_->model : nullptr);
  operator_head_->set_title(placed ? tr("Selected task") : tr("Selected operator"));
}

void PlanPanel::show_placement() {
  const ThemeColors& colors = theme_colors(palette());
  words_->setText(describe_placement(*placement_));
  const auto fullest = std::size_t(std::max_element(placement_->peak_bytes.begin(), placement_->peak_bytes.end()) -
                                   placement_->peak_bytes.begin());
  const std::int64_t peak = placement_->peak_bytes[fullest], limit = placement_->limit_bytes[fullest];
  const bool limited = limit != kUnlimitedBytes;
  memory_bar_->set_parts({{peak > limit ? colors.error : device_palette(colors)[device_slot(std::uint32_t(fullest))],
                           double(peak), tr("Peak of device %1: %2").arg(fullest).arg(memory_text(peak))}},
                         limited ? double(limit) : 0,
                         limited && limit > peak ? tr("%1 free").arg(memory_text(limit - peak)) : QString());
  memory_legend_->set_rows(device_rows(*placement_, colors));
  const double busy = placement_->busy_s[placement_->busiest_device()];
  const double waiting = std::max(0.0, placement_->makespan_s - busy);
  time_bar_->set_parts({{colors.compute[0], busy, tr("Busiest device computes %1").arg(time_text(busy))},
                        {colors.network[0], waiting, tr("and waits %1").arg(time_text(waiting))}});
  const TimeUnit unit = time_unit_for(placement_->makespan_s);
  compute_legend_->set_rows({{colors.compute[0], tr("Computes"), time_in(unit, busy), {}}});
  std::vector<PartRow> network{{colors.network[0], tr("Waits"), time_in(unit, waiting), {}}};
  if (placement_->placement.devices > 1)
    network.push_back({colors.network[0], tr("Peak comm."), memory_text(placement_->peak_communication_bytes), {}});
  network_legend_->set_rows(std::move(network));
  stage_head_->set_value(tr("makespan after it"));
  stage_legend_->set_rows(stage_rows(*placement_, colors.method(placement_->method)));
}

void PlanPanel::show_task() {
  clear_facts();
  const auto& picked = selection_ ? selection_->tasks() : std::set<TaskIndex>();
  operator_head_->set_value(picked.size() > 1 ? tr("%1 selected").arg(picked.size()) : QString());
  if (picked.size() != 1 || *picked.begin() >= placement_->graph->task_count()) {
    add_fact(0,
             picked.empty() ? tr("Click a task in the graph or the timeline.") : tr("Click one task for its details."),
             {});
    return;
  }
  int row = 0;
  for (const Fact& fact : describe_task(*placement_, *picked.begin())) add_fact(row++, fact.name, fact.value);
}

/// Those who read the weight, or one of several that are updated together.
void PlanPanel::pick_weight(const QString& name) {
  if (!selection_ || !scenario_) return;
  const QStringList names = name.split(QStringLiteral(", "));
  std::set<OperatorId> readers;
  const Model& model = *scenario_->model;
  for (std::size_t t = 0; t < model.tensors.size(); ++t)
    if (names.contains(to_qt(model.tensors[TensorId(t)].name)))
      for (const Model::Use& use : model.uses[TensorId(t)]) readers.insert(use.op);
  if (!readers.empty()) selection_->pick_operators(std::move(readers));
}

}  // namespace turnpoint::views
