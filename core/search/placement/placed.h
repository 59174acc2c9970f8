// SPDX-License-Identifier: Apache-2.0
// What placement methods place on a scenario, and a placement as the plan of a result.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/plan/placement_plan.h"
#include "core/scenario/scenario.h"
#include "core/search/placement/graph_options.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::search {

/// The task graph that placement methods place on this scenario; of a Model its training graph.
struct PlacedGraph {
  TaskGraphPtr graph;
  std::vector<OperatorId> operator_of;  ///< by task; empty for a task graph that was opened as it is
  std::vector<TaskRole> role;           ///< likewise
  TrainingGraphOptions made_with = usual_training_graph();
};
/// `options` with so many micro-batches that the scenario's batch is cut into. A task graph that was opened is what it
/// is. Error: the batch cannot be cut so.
Expected<PlacedGraph> graph_to_place(const Scenario& scenario,
                                     const TrainingGraphOptions& options = usual_training_graph());
/// Everything on the fastest of so many devices, one task after another.
double one_device_seconds(const TaskGraph& graph, std::uint32_t devices);
placement::PlacementRequest placement_request(const Scenario& scenario);

/// Only the figures that do not come from the placement found.
std::shared_ptr<PlacementPlan> begin_plan(std::string method, PlacedGraph placed,
                                          const placement::PlacementRequest& request);
/// Gives a plan a placement and what the simulator says of it. `locate`: the first instant of a shortage is looked for.
Expected<PlacementPlanPtr> simulated(std::shared_ptr<PlacementPlan> plan, Placement placement,
                                     const placement::PlacementRequest& request, bool locate);

/// A placement that is there already, simulated; without stages and moved tasks, which only its search knows. What the
/// training graph was made with, if that is not known, is with or without whole layers, whichever has as many tasks.
/// Bad input at `where`: it is of another task graph or another number of devices, or its order cannot end.
Expected<PlacementPlanPtr> placed_as(const Scenario& scenario, Placement placement, const std::string& method,
                                     const std::optional<TrainingGraphOptions>& made_with, const std::string& where);

}  // namespace turnpoint::search
