// SPDX-License-Identifier: Apache-2.0
// A plan for Graphviz.
#include "core/export/format.h"
#include "core/plan/export.h"
#include "core/plan/placement_export.h"

namespace turnpoint {

ExportFormat dot_format() {
  return {.key = "dot",
          .subject = "Plan",
          .name = "Graphviz DOT",
          .file = "plan.dot",
          .text = "The plan as a coloured graph",
          .plan = write_plan_dot,
          .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_dot(plan); }};
}

}  // namespace turnpoint
