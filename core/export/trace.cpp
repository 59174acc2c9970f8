// SPDX-License-Identifier: Apache-2.0
// What Timeline draws: every device's computing and sending, pipelines with their micro-batches.
#include "core/simulation/trace.h"
#include "core/export/format.h"
#include "core/plan/placement_export.h"
#include "core/plan/plan_schedule.h"

namespace turnpoint {

ExportFormat trace_format() {
  return {.key = "trace",
          .subject = "Schedule",
          .name = "trace",
          .file = "trace.json",
          .text = "The plan's timeline, for Perfetto and chrome://tracing",
          .plan = [](const Scenario& scenario, const Plan& plan) -> Expected<std::string> {
            const auto schedule = plan_schedule(scenario, plan);
            if (!schedule) return schedule.error();
            return write_trace(**schedule);
          },
          .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_trace(plan); }};
}

}  // namespace turnpoint
