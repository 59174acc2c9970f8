// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/placement_search.h"

#include <fmt/format.h>
#include <algorithm>
#include <cassert>
#include <chrono>
#include <numeric>
#include <utility>

#include "core/plan/training_graph.h"
#include "core/scenario/task_scenario.h"
#include "core/search/placement/judge.h"

namespace turnpoint::search {

namespace {

using placement::Judge;
using placement::PlacementMethod;
using placement::PlacementRequest;
using placement::PlacementResult;

class OnePlacement : public PlanSource {
 public:
  explicit OnePlacement(PlacementPlanPtr placement) : placement_(std::move(placement)) {}
  Plan plan(std::size_t) const override { return {}; }
  PlacementPlanPtr placement(std::size_t) const override { return placement_; }
  std::size_t bytes() const override {
    // A graph that was opened as it is stays without this; one that was made of a model does not.
    constexpr std::size_t kTask = 160, kEdge = 32;
    return placement_->graph->task_count() * kTask + placement_->graph->edge_count() * kEdge;
  }

 private:
  PlacementPlanPtr placement_;
};

double one_device_seconds(const TaskGraph& graph, std::uint32_t devices) {
  double speed = 0;
  for (std::uint32_t d = 0; d < devices; ++d) speed = std::max(speed, graph.speed_of(d));
  return std::accumulate(graph.time_s.begin(), graph.time_s.end(), 0.0) / speed;
}

ResultPtr make_result(const ScenarioPtr& scenario, const PlacementMethod& method, PlacementPlanPtr plan,
                      double search_s) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = method.name;
  result->clock = Clock::simulated;
  result->search_s = search_s;
  ResultPoint point;
  point.memory_bytes = *std::max_element(plan->peak_bytes.begin(), plan->peak_bytes.end());
  point.time_s = plan->makespan_s;
  point.compute_s = std::min(plan->busy_s[plan->busiest_device()], plan->makespan_s);
  point.network_s = point.time_s - point.compute_s;
  point.fits = !plan->shortage.has_value();
  result->points.push_back(point);
  if (point.fits) result->near_best = 0;
  result->plans = std::make_shared<OnePlacement>(std::move(plan));
  return result;
}

/// Only the figures that do not come from the placement found.
std::shared_ptr<PlacementPlan> begin_plan(std::string method, PlacedGraph placed, const PlacementRequest& request) {
  auto plan = std::make_shared<PlacementPlan>();
  plan->method = std::move(method);
  plan->one_device_s = one_device_seconds(*placed.graph, request.devices);
  for (std::uint32_t d = 0; d < request.devices; ++d) plan->limit_bytes.push_back(request.limit_of(*placed.graph, d));
  plan->graph = std::move(placed.graph);
  plan->operator_of = std::move(placed.operator_of);
  plan->role = std::move(placed.role);
  return plan;
}

/// Gives a plan a placement and what the simulator says of it.
Expected<PlacementPlanPtr> simulated(std::shared_ptr<PlacementPlan> plan, Placement placement,
                                     const PlacementRequest& request, bool locate) {
  plan->placement = std::move(placement);
  Judge judge(*plan->graph, request);
  const auto verdict = judge.measure(plan->placement);
  if (!verdict) return verdict.error();
  plan->makespan_s = verdict->makespan_s;
  plan->max_load_s = placement::max_load_s(*plan->graph, plan->placement);
  for (const SimulatedDevice& device : judge.simulation().devices) plan->busy_s.push_back(device.busy_s);
  plan->peak_bytes = verdict->peak_bytes;
  auto shortage = verdict->shortage;
  if (shortage && locate) {
    auto located = judge.locate_shortage(plan->placement);
    if (!located) return located.error();
    shortage = *located;
  }
  if (shortage) plan->shortage = PlacementShortage{shortage->device, shortage->time_s, shortage->bytes};
  return PlacementPlanPtr(std::move(plan));
}

class PlacementSearcher : public Searcher {
 public:
  explicit PlacementSearcher(const PlacementMethod& method) : method_(method) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    if (last_ && last_->scenario == scenario && full_) return last_;
    const auto begin = std::chrono::steady_clock::now();
    context.report("task graph");
    auto placed = graph_to_place(*scenario);
    if (!placed) return placed.error();
    if (context.cancelled()) return cancelled_error();
    const PlacementRequest request = placement_request(*scenario);
    const bool again = pass == SearchPass::coarse && same_tasks(*placed->graph, request);
    auto plan = again ? simulate_again(std::move(*placed), request) : place(std::move(*placed), request, context);
    if (!plan) return plan.error();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    last_ = make_result(scenario, method_, *plan, seconds);
    full_ = !again;
    return last_;
  }

 private:
  bool same_tasks(const TaskGraph& graph, const PlacementRequest& request) const {
    if (!last_) return false;
    const PlacementPlanPtr before = last_->plans->placement(0);
    const TaskGraph& old = *before->graph;
    return before->placement.devices == request.devices && old.task_count() == graph.task_count() &&
           old.out_begin == graph.out_begin && old.out_to == graph.out_to && old.colocate == graph.colocate;
  }

  Expected<PlacementPlanPtr> place(PlacedGraph placed, const PlacementRequest& request, const RunContext& context) {
    auto plan = begin_plan(method_.name, std::move(placed), request);
    auto found = placement::run_placement(method_, *plan->graph, request, context);
    if (!found) return found.error();
    plan->placement = std::move(found->placement);
    plan->makespan_s = found->makespan_s;
    plan->max_load_s = found->max_load_s;
    plan->busy_s = std::move(found->busy_s);
    plan->peak_bytes = std::move(found->peak_bytes);
    plan->moved_tasks = found->moved_tasks;
    if (found->shortage)
      plan->shortage = PlacementShortage{found->shortage->device, found->shortage->time_s, found->shortage->bytes};
    for (auto& stage : found->stages) plan->stages.push_back({std::move(stage.name), stage.makespan_s});
    return PlacementPlanPtr(std::move(plan));
  }

  /// The placement found last on links, devices and times of now.
  Expected<PlacementPlanPtr> simulate_again(PlacedGraph placed, const PlacementRequest& request) {
    return simulated(begin_plan(method_.name, std::move(placed), request), last_->plans->placement(0)->placement,
                     request, false);
  }

  const PlacementMethod& method_;
  ResultPtr last_;
  bool full_ = false;  ///< last_ is an answer to its scenario, not an older placement simulated under it
};

// A Method holds plain function pointers; each entry has its own by its place in the registry.
template <std::size_t I>
std::unique_ptr<Searcher> make_entry() {
  return std::make_unique<PlacementSearcher>(placement::placement_methods()[I]);
}

template <std::size_t I>
std::string entry_refuses(const Scenario&) {
  const PlacementMethod& method = placement::placement_methods()[I];
  return method.unavailable ? method.unavailable() : std::string();
}

constexpr std::size_t kEntries = 9;

template <std::size_t... I>
std::vector<Method> make_entries(std::index_sequence<I...>) {
  const auto entry = [](const PlacementMethod& placed, std::unique_ptr<Searcher> (*make)(),
                        std::string (*refuses)(const Scenario&)) {
    Method method;
    method.name = placed.name;
    method.title = placed.title;
    method.paper = placed.paper;
    method.description = placed.description;
    method.places = true;
    method.refuses = refuses;
    method.make = make;
    return method;
  };
  return {entry(placement::placement_methods()[I], &make_entry<I>, &entry_refuses<I>)...};
}

}  // namespace

std::vector<Method> placement_search_methods() {
  assert(placement::placement_methods().size() == kEntries);
  return make_entries(std::make_index_sequence<kEntries>());
}

Expected<PlacedGraph> graph_to_place(const Scenario& scenario) {
  if (scenario.tasks) return PlacedGraph{placed_tasks(scenario), {}, {}};
  TrainingGraphOptions options;
  options.unrolled_steps = true;  // recurrent layers run side by side only step by step
  auto made = training_graph_of(scenario, options);
  if (!made) return made.error();
  return PlacedGraph{std::move(made->graph), std::move(made->operator_of), std::move(made->role)};
}

Expected<PlacementPlanPtr> placed_as(const Scenario& scenario, Placement placement, const std::string& method,
                                     const std::string& where) {
  auto placed = graph_to_place(scenario);
  if (!placed) return placed.error();
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
