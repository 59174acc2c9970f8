// SPDX-License-Identifier: Apache-2.0
// A drawing of a plan; of placements only the window has one.
#include "core/export/format.h"
#include "core/plan/export.h"

namespace turnpoint {

ExportFormat svg_format() {
  return {.key = "svg",
          .subject = "Plan",
          .name = "SVG",
          .file = "plan.svg",
          .text = "A drawing of the plan",
          .plan = write_plan_svg};
}

}  // namespace turnpoint
