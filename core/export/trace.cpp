// SPDX-License-Identifier: Apache-2.0
// A plan's schedule for Perfetto and chrome://tracing.
#include "core/simulation/trace.h"

#include "core/export/format.h"
#include "core/export/writers.h"
#include "core/schedule/plan_schedule.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

Expected<std::string> write_placement_trace(const PlacementPlan& plan) {
  const auto simulation = simulate(*plan.graph, plan.placement, true, "placement of the plan");
  if (!simulation) return simulation.error();
  return write_trace(*plan.graph, plan.placement, *simulation);
}

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
          .ratio = [](const Scenario& scenario, const RatioPlan& plan) -> Expected<std::string> {
            const auto schedule = plan_schedule(scenario, plan);
            if (!schedule) return schedule.error();
            return write_trace(**schedule);
          },
          .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_trace(plan); }};
}

}  // namespace turnpoint
