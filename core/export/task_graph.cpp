// SPDX-License-Identifier: Apache-2.0
// The tasks that a placement places, for other placement programs.
#include "core/export/writers.h"
#include "core/plan_io/task_graph_json.h"

namespace turnpoint {

ExportFormat task_graph_format() {
  return {.key = "task-graph",
          .subject = "Task graph",
          .name = "task graph",
          .file = "tasks.json",
          .text = "The tasks that a placement places, with their times, bytes and edges",
          .placement = [](const Scenario&, const PlacementPlan& plan) -> Expected<std::string> {
            return write_task_graph(*plan.graph);
          }};
}

}  // namespace turnpoint
