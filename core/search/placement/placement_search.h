// SPDX-License-Identifier: Apache-2.0
// The placement methods as search methods: on a Model's scenario they place its training graph, on a scenario with a
// task graph that graph. One answer each, on the simulated clock, in the same chart as every other method.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/search/method.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::search {

/// One Method per entry of placement::placement_methods(), in its order.
///
/// A run gives one point: memory the largest device's peak, time the makespan, of which compute_s is the busiest
/// device's computing and network_s the rest: its waiting for transfers and for others. Its PlanSource has a
/// PlacementPlan. What does not fit is a result too, whose point does not fit.
/// SearchPass::coarse simulates the placement found last under the new scenario where the tasks and devices are still
/// the same (a slider), else it is a full run; the exact pass on the same scenario then returns what is there.
std::vector<Method> placement_search_methods();

/// The task graph that placement methods place on this scenario; of a Model its training graph, with recurrent
/// operators as their time steps.
struct PlacedGraph {
  TaskGraphPtr graph;
  std::vector<OperatorId> operator_of;  ///< by task; empty for a task graph that was opened as it is
  std::vector<TaskRole> role;           ///< likewise
};
Expected<PlacedGraph> graph_to_place(const Scenario& scenario);
placement::PlacementRequest placement_request(const Scenario& scenario);

/// A placement that is there already, simulated; without stages and moved tasks, which only its search knows. Bad input
/// at `where`: it is of another task graph or another number of devices, or its order cannot end.
Expected<PlacementPlanPtr> placed_as(const Scenario& scenario, Placement placement, const std::string& method,
                                     const std::string& where);

}  // namespace turnpoint::search
