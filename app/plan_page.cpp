// SPDX-License-Identifier: Apache-2.0
#include "app/plan_page.h"

#include "app/chart_page.h"
#include "app/workspace.h"
#include "views/common/format.h"
#include "views/frontier/frontier_chart.h"
#include "views/memory/memory_summary.h"
#include "views/plan/plan_panel.h"

namespace turnpoint::app {

PlanPage::PlanPage(Workspace& work, ChartPage& chart, views::PlanPanel* panel)
    : QObject(panel), work_(work), panel_(panel) {
  using Stride = views::FrontierChart::Stride;
  views::FrontierChart* of = chart.chart();
  panel_->set_selection(&work_.document.selection());
  panel_->set_figures([of](std::int64_t bytes) { return of->memory_words(bytes); },
                      [of](double seconds) { return of->time_words(seconds); });
  connect(of, &views::FrontierChart::view_changed, panel_, &views::PlanPanel::refresh_figures);
  connect(panel_, &views::PlanPanel::step_requested, of,
          [of](int steps, bool every) { of->step_pick(steps, every ? Stride::every : Stride::visible); });
  connect(&work_.document, &Document::model_changed, this, [this] {
    panel_->set_plan(nullptr, nullptr);
    if (!work_.document.scenario()) show_point();
  });
  connect(&work_.document, &Document::scenario_changed, this, &PlanPage::show_state);
  connect(&work_.document.selection(), &views::SelectionModel::point_changed, this, &PlanPage::show_point);
  connect(&work_.runner, &SearchRunner::result_changed, this, [this] {
    if (!work_.runner.more_follow()) show_point();
  });
  connect(&work_.runner, &SearchRunner::runs_changed, this, &PlanPage::show_state);
  connect(&work_.clock, &SimulatedClock::changed, this, &PlanPage::show_point);
  connect(&work_.judge, &FitJudge::judged_changed, this, &PlanPage::show_point);
  connect(&work_.loader, &PlanLoader::plan_changed, this, &PlanPage::show_plan);
  connect(&work_.schedules, &ScheduleLoader::changed, this, &PlanPage::show_peak);
  show_state();
  show_point();
}

void PlanPage::show_state() {
  const MethodRun* main = work_.runner.subject();
  const bool searching = main && !main->result && main->state == MethodRun::State::running;
  panel_->set_empty_text(!work_.document.scenario() ? tr("Open a model to see its plans.")
                         : searching                ? tr("Searching: the first plans are not there yet.")
                                                    : tr("Pick a point in the chart to see its plan."));
}

void PlanPage::show_plan() {
  if (!work_.plan_is_of_model()) return;
  const PlanLoader& loader = work_.loader;
  const ScenarioPtr scenario = loader.result() ? loader.result()->scenario : nullptr;
  const auto whole_updates = loader.result() ? loader.result()->whole_updates : std::nullopt;
  if (!loader.picked_plan())
    panel_->set_plan(nullptr, scenario);
  else
    std::visit(
        Overloads{[&](const PlanPtr& plan) { panel_->set_plan(plan, scenario, whole_updates); },
                  [&](const RatioPlanPtr& plan) { panel_->set_ratio(plan, loader.plan(), scenario, whole_updates); },
                  [&](const PlacementPlanPtr& plan) { panel_->set_placement(plan, scenario); }},
        *loader.picked_plan());
  show_peak();
}

void PlanPage::show_point() {
  const auto& picked = work_.document.selection().point();
  const MethodRun* run = work_.picked_run();
  const bool there = run != nullptr;
  // On the simulated clock the panel says what the chart shows, as soon as the chart can.
  const SimulatedClock::Curve* curve = there && work_.clock.on() ? work_.clock.find(run->name) : nullptr;
  const bool simulated = curve && curve->of == run->result && views::drawable(curve->drawn->points[picked->index]);
  panel_->set_point(!there      ? nullptr
                    : simulated ? curve->drawn
                                : work_.judge.judged(*run),
                    there ? picked->index : 0, there ? views::to_qt(run->label()) : QString(), there && run->coarse);
  show_peak();
}

/// Never that of another plan than the one whose figures stand above it.
void PlanPage::show_peak() {
  const bool known = work_.loader.up_to_date() && work_.schedules.is_of(work_.loader.plan());
  const std::int64_t peak = known ? work_.schedules.loaded().memory->largest_peak() : 0;
  panel_->set_peak(peak > 0 ? std::optional(peak) : std::nullopt);
}

}  // namespace turnpoint::app
