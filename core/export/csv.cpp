// SPDX-License-Identifier: Apache-2.0
// A plan as a table.
#include "core/export/format.h"
#include "core/plan/export.h"
#include "core/plan/placement_export.h"

namespace turnpoint {

ExportFormat csv_format() {
  return {.key = "csv",
          .subject = "Plan",
          .name = "CSV",
          .file = "plan.csv",
          .text = "One row per operator or task of the plan",
          .plan = [](const Scenario& scenario, const Plan& plan) { return write_plan_csv(scenario, plan); },
          .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_csv(plan); },
          .plan_alone = [](const PlanAlone& alone) -> Expected<std::string> {
            if (!alone.parts) return bad_input("the model: this file has no parts of costs");
            return write_plan_csv(alone);
          }};
}

}  // namespace turnpoint
