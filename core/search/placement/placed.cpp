// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/placed.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <utility>

#include "core/scenario/task_scenario.h"
#include "core/schedule/training_graph.h"
#include "core/search/placement/judge.h"

namespace turnpoint::search {

using placement::Judge;
using placement::PlacementRequest;

double one_device_seconds(const TaskGraph& graph, std::uint32_t devices) {
  double speed = 0;
  for (std::uint32_t d = 0; d < devices; ++d) speed = std::max(speed, graph.speed_of(d));
  return std::accumulate(graph.time_s.begin(), graph.time_s.end(), 0.0) / speed;
}

std::shared_ptr<PlacementPlan> begin_plan(std::string method, PlacedGraph placed, const PlacementRequest& request) {
  auto plan = std::make_shared<PlacementPlan>();
  plan->method = std::move(method);
  plan->one_device_s = one_device_seconds(*placed.graph, request.devices);
  for (std::uint32_t d = 0; d < request.devices; ++d) plan->limit_bytes.push_back(request.limit_of(*placed.graph, d));
  plan->graph = std::move(placed.graph);
  plan->operator_of = std::move(placed.operator_of);
  plan->role = std::move(placed.role);
  plan->made_with = placed.made_with;
  return plan;
}

Expected<PlacementPlanPtr> simulated(std::shared_ptr<PlacementPlan> plan, Placement placement,
                                     const PlacementRequest& request, bool locate) {
  plan->placement = std::move(placement);
  Judge judge(*plan->graph, request);
  const auto verdict = judge.measure(plan->placement);
  if (!verdict) return verdict.error();
  plan->makespan_s = verdict->makespan_s;
  plan->max_load_s = placement::max_load_s(*plan->graph, plan->placement);
  for (const SimulatedDevice& device : judge.simulation().devices) {
    plan->busy_s.push_back(device.busy_s);
    plan->persistent_bytes.push_back(device.persistent_bytes);
  }
  plan->peak_bytes = verdict->peak_bytes;
  plan->peak_communication_bytes = peak_communication(judge.simulation());
  plan->shortage = verdict->shortage;
  if (plan->shortage && locate) {
    auto located = judge.locate_shortage(plan->placement);
    if (!located) return located.error();
    plan->shortage = *located;
  }
  return PlacementPlanPtr(std::move(plan));
}

Expected<PlacedGraph> graph_to_place(const Scenario& scenario, const TrainingGraphOptions& options) {
  if (scenario.tasks) return PlacedGraph{placed_tasks(scenario), {}, {}};
  auto made = training_graph_of_batch(scenario, options);
  if (!made) return made.error();
  return PlacedGraph{std::move(made->graph), std::move(made->operator_of), std::move(made->role), options};
}

Expected<PlacementPlanPtr> placed_as(const Scenario& scenario, Placement placement, const std::string& method,
                                     const std::optional<TrainingGraphOptions>& made_with, const std::string& where) {
  auto placed = graph_to_place(scenario, made_with.value_or(usual_training_graph()));
  if (!placed) return placed.error();
  // With whole layers, as all placements were in files of version 1.0 and before, there are no tasks of weights.
  if (!scenario.tasks && !made_with && placement.device.size() != placed->graph->task_count()) {
    TrainingGraphOptions options = usual_training_graph();
    options.whole_layers = true;
    if (auto whole = graph_to_place(scenario, options); whole && whole->graph->task_count() == placement.device.size())
      placed = std::move(whole);
  }
  if (auto fits = check_placement(*placed->graph, placement, where); !fits) return fits.error();
  const PlacementRequest request = placement_request(scenario);
  if (placement.devices != request.devices)
    return bad_input(fmt::format("has {} devices, its scenario {}", placement.devices, request.devices), where);
  return simulated(begin_plan(method, std::move(*placed), request), std::move(placement), request, true);
}

PlacementRequest placement_request(const Scenario& scenario) {
  PlacementRequest request;
  request.devices = std::uint32_t(scenario.cluster->devices());
  if (scenario.settings.memory_limit > 0) request.memory_limit = scenario.settings.memory_limit;
  request.seed = scenario.settings.seed;
  return request;
}

}  // namespace turnpoint::search
