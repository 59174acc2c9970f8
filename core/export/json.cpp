// SPDX-License-Identifier: Apache-2.0
// turnpoint/plan@1, as result files hold it.
#include <nlohmann/json.hpp>

#include "core/export/format.h"
#include "core/plan_io/placement_json.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/ratio_json.h"

namespace turnpoint {

ExportFormat json_format() {
  const auto text_of = [](const nlohmann::json& plan) { return plan.dump(1) + "\n"; };
  return {.key = "json",
          .subject = "Plan",
          .name = "JSON",
          .file = "plan.json",
          .text = "The plan, for other programs",
          .plan = [text_of](const Scenario& scenario, const Plan& plan) { return text_of(write_plan(scenario, plan)); },
          .ratio = [text_of](const Scenario& scenario,
                             const RatioPlan& plan) { return text_of(write_ratio_plan(scenario, plan)); },
          .placement = write_placement_plan,
          .held = text_of};
}

}  // namespace turnpoint
