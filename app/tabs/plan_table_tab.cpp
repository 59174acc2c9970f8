// SPDX-License-Identifier: Apache-2.0
#include "app/tab.h"
#include "views/plan_table/plan_table_view.h"

namespace turnpoint::app {

namespace {

class PlanTableTab : public ViewTab<views::PlanTableView> {
 public:
  explicit PlanTableTab(const TabParts& parts)
      : ViewTab(parts, "plan_table", tr("Plan table"), new views::PlanTableView(parts.window)) {
    view_->share_colors(parts.colors);
  }

 protected:
  void set_model(const ScenarioPtr& scenario) override {
    const bool tasks = scenario && scenario->tasks;
    view_->set_empty_text(tasks ? tr("A task graph has no operators; its tasks stand in the tab Tasks.")
                                : tr("Open a model to see its plan."));
    view_->set_model(tasks || !scenario ? nullptr : scenario->model);
  }
  void set_plan(const std::shared_ptr<const Plan>& plan, const ScenarioPtr& scenario) override {
    if (!scenario || !scenario->tasks) view_->set_plan(plan, scenario);
  }
};

}  // namespace

Tab* plan_table_tab(const TabParts& parts) { return new PlanTableTab(parts); }

}  // namespace turnpoint::app
