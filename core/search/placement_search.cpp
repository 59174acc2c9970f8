// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement_search.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/text.h"
#include "core/search/placement/placed.h"
#include "core/search/placement_registry.h"

namespace turnpoint::search {

namespace {

using placement::PlacementMethod;
using placement::PlacementRequest;

class OnePlacement : public PlanSource {
 public:
  explicit OnePlacement(PlacementPlanPtr placement) : placement_(std::move(placement)) {}
  AnyPlan plan(std::size_t) const override { return placement_; }
  PlanKind kind(std::size_t) const override { return PlanKind::placement; }
  std::size_t bytes() const override {
    // A graph that was opened as it is stays without this; one that was made of a model does not.
    constexpr std::size_t kTask = 160, kEdge = 32;
    return placement_->graph->task_count() * kTask + placement_->graph->edge_count() * kEdge;
  }

 private:
  PlacementPlanPtr placement_;
};

/// Of a method that tries several ways to begin: which one its placement is of, and what became of it.
std::string how_it_came_about(const PlacementPlan& plan) {
  const auto began = std::find_if(plan.stages.begin(), plan.stages.end(),
                                  [&](const PlacementStage& stage) { return stage.name == plan.origin; });
  if (plan.origin.empty() || began == plan.stages.end()) return {};
  std::string said =
      fmt::format("The placement began as \"{}\", {} a step.", plan.origin, format_seconds(began->makespan_s));
  const PlacementStage* last = nullptr;
  for (const PlacementStage& stage : plan.stages)
    if (!last && &stage > &*began && stage.makespan_s == plan.makespan_s && plan.makespan_s < began->makespan_s)
      last = &stage;
  said += last ? fmt::format(" Stage \"{}\" brought it to {}.", last->name, format_seconds(plan.makespan_s))
          : plan.makespan_s > began->makespan_s
              ? fmt::format(" What the memory asked for brought it to {}.", format_seconds(plan.makespan_s))
              : std::string(" No later stage made it faster.");
  return said;
}

ResultPtr make_result(const ScenarioPtr& scenario, const PlacementMethod& method, std::string parameters,
                      PlacementPlanPtr plan, double search_s) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = method.name;
  result->method_options = std::move(parameters);
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
  if (std::string said = how_it_came_about(*plan); !said.empty()) result->explanations.push_back(std::move(said));
  result->plans = std::make_shared<OnePlacement>(std::move(plan));
  return result;
}

class PlacementSearcher : public Searcher {
 public:
  PlacementSearcher(const PlacementMethod& method, bool whole_layers, std::string parameters)
      : method_(method), whole_layers_(whole_layers), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    if (last_ && last_->scenario == scenario && full_) return last_;
    const auto begin = std::chrono::steady_clock::now();
    context.report("task graph");
    auto placed = graph_to_place(*scenario, whole_layers_);
    if (!placed) return placed.error();
    if (context.cancelled()) return cancelled_error();
    const PlacementRequest request = placement_request(*scenario);
    const bool again = pass == SearchPass::coarse && same_tasks(*placed->graph, request);
    auto plan = again ? simulate_again(std::move(*placed), request) : place(std::move(*placed), request, context);
    if (!plan) return plan.error();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    last_ = make_result(scenario, method_, parameters_, *plan, seconds);
    full_ = !again;
    return last_;
  }

 private:
  PlacementPlanPtr placed_last() const { return std::get<PlacementPlanPtr>(last_->plans->plan(0)); }

  bool same_tasks(const TaskGraph& graph, const PlacementRequest& request) const {
    if (!last_) return false;
    const PlacementPlanPtr before = placed_last();
    const TaskGraph& old = *before->graph;
    return before->placement.devices == request.devices && old.task_count() == graph.task_count() &&
           old.out_begin == graph.out_begin && old.out_to == graph.out_to && old.colocate == graph.colocate;
  }

  Expected<PlacementPlanPtr> place(PlacedGraph placed, const PlacementRequest& request, const RunContext& context) {
    auto plan = begin_plan(method_.name, std::move(placed), request);
    auto found = placement::run_placement(method_, *plan->graph, request, context);
    if (!found) return found.error();
    static_cast<SimulatedPlacement&>(*plan) = std::move(*found);
    return PlacementPlanPtr(std::move(plan));
  }

  /// The placement found last on links, devices and times of now.
  Expected<PlacementPlanPtr> simulate_again(PlacedGraph placed, const PlacementRequest& request) {
    return simulated(begin_plan(method_.name, std::move(placed), request), placed_last()->placement, request, false);
  }

  const PlacementMethod& method_;
  const bool whole_layers_;
  const std::string parameters_;
  ResultPtr last_;
  bool full_ = false;  ///< last_ is an answer to its scenario, not an older placement simulated under it
};

const std::vector<OptionRecord>& placement_options() {
  static const std::vector<OptionRecord> options = {
      {"whole-layers",
       "Whole layers",
       "",
       OptionType::flag,
       0,
       0,
       1,
       {},
       "Keep all that a layer computes on the device of its weights, so that weights never travel"}};
  return options;
}
Expected<Parameters> read_placement_options(const PlacementMethod& method, std::string_view text) {
  return read_parameters("method " + method.name, placement_options(), text);
}

std::string refusal_with(const PlacementMethod& method, const Scenario& scenario, std::string_view text) {
  const auto parameters = read_placement_options(method, text);
  if (!parameters) return parameters.error().what;
  if (scenario.tasks && parameters->flag("whole-layers"))
    return "takes whole-layers for models alone: a task graph says itself which of its tasks share a device";
  return method.unavailable ? method.unavailable() : std::string();
}

Expected<std::unique_ptr<Searcher>> make_placement_searcher(const PlacementMethod& method, std::string_view text) {
  const auto parameters = read_placement_options(method, text);
  if (!parameters) return parameters.error();
  return std::unique_ptr<Searcher>(
      std::make_unique<PlacementSearcher>(method, parameters->flag("whole-layers"), std::string(text)));
}

Method entry_of(const PlacementMethod& placed) {
  return {
      .name = placed.name,
      .title = placed.title,
      .paper = placed.paper,
      .description = placed.description,
      .places = true,
      .on_by_default = placed.on_by_default,
      .default_method = placed.default_method,
      .for_comparison = placed.for_comparison,
      .options = placement_options(),
      .make_with = [&placed](std::string_view text) { return make_placement_searcher(placed, text); },
      .refuses_with = [&placed](const Scenario& scenario,
                                std::string_view text) { return refusal_with(placed, scenario, text); },
  };
}

}  // namespace

std::vector<Method> placement_search_methods() {
  std::vector<Method> entries;
  for (const PlacementMethod& placed : placement::placement_methods()) entries.push_back(entry_of(placed));
  return entries;
}

}  // namespace turnpoint::search
