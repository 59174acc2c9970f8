// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement_search.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/base/text.h"
#include "core/plan/learning.h"
#include "core/search/live_search.h"
#include "core/search/placement/graph_options.h"
#include "core/search/placement/placed.h"
#include "core/search/placement_registry.h"

namespace turnpoint::search {

namespace {

using placement::PlacementMethod;
using placement::PlacementRequest;

constexpr const char* kNotEndedNote = "This is the best placement so far of a search that has not ended.";
constexpr const char* kStoppedNote =
    "The search was stopped early: its answer is the best placement until then, which searching again need not find.";

class Placements : public PlanSource {
 public:
  explicit Placements(std::vector<PlacementPlanPtr> plans) : plans_(std::move(plans)) {}
  AnyPlan plan(std::size_t point) const override { return plans_[point]; }
  PlanKind kind(std::size_t) const override { return PlanKind::placement; }
  std::size_t bytes() const override {
    // A graph that was opened as it is stays without this; one that was made of a model does not.
    constexpr std::size_t kTask = 160, kEdge = 32, kPlaced = 8;
    const TaskGraph& graph = *plans_.front()->graph;
    return graph.task_count() * (kTask + plans_.size() * kPlaced) + graph.edge_count() * kEdge;
  }

 private:
  std::vector<PlacementPlanPtr> plans_;
};

/// Of a method that tries several ways to begin: which one its answer is of, and what became of it. It names the
/// answer, since the words stand beside the other points as well.
std::string how_it_came_about(const PlacementPlan& plan) {
  const auto began = std::find_if(plan.stages.begin(), plan.stages.end(),
                                  [&](const PlacementStage& stage) { return stage.name == plan.origin; });
  if (plan.origin.empty() || began == plan.stages.end()) return {};
  const PlacementStage* last = nullptr;
  for (const PlacementStage& stage : plan.stages)
    if (!last && &stage > &*began && stage.makespan_s == plan.makespan_s && plan.makespan_s < began->makespan_s)
      last = &stage;
  const double gain = began->makespan_s > 0 ? 100 * (1 - plan.makespan_s / began->makespan_s) : 0;
  const std::string became = last ? fmt::format("stage \"{}\" made it {:.2g} % faster", last->name, gain)
                             : plan.makespan_s > began->makespan_s ? std::string("the memory's limit made it slower")
                                                                   : std::string("no later stage made it faster");
  return fmt::format("The answer of {} a step began as \"{}\", {} a step; {}.", format_seconds(plan.makespan_s),
                     plan.origin, format_seconds(began->makespan_s), became);
}

std::int64_t most_bytes(const PlacementPlan& plan) {
  return *std::max_element(plan.peak_bytes.begin(), plan.peak_bytes.end());
}

/// By rising memory; the first of `plans` stays, and of the others those that none of all beats.
std::vector<PlacementPlanPtr> frontier_of(std::vector<PlacementPlanPtr> plans) {
  const PlacementPlanPtr answer = plans.front();
  std::stable_sort(plans.begin(), plans.end(), [](const PlacementPlanPtr& a, const PlacementPlanPtr& b) {
    return std::make_pair(most_bytes(*a), a->makespan_s) < std::make_pair(most_bytes(*b), b->makespan_s);
  });
  std::vector<PlacementPlanPtr> kept;
  for (const PlacementPlanPtr& plan : plans) {
    const bool beaten = !kept.empty() && kept.back()->makespan_s <= plan->makespan_s;
    const bool beats =
        plan != answer && most_bytes(*plan) <= most_bytes(*answer) && plan->makespan_s <= answer->makespan_s;
    if (!beaten && !beats) kept.push_back(plan);
  }
  return kept;
}

ResultPoint point_of(const PlacementPlan& plan) {
  ResultPoint point;
  point.memory_bytes = most_bytes(plan);
  point.time_s = plan.makespan_s;
  point.compute_s = std::min(plan.busy_s[plan.busiest_device()], plan.makespan_s);
  point.network_s = point.time_s - point.compute_s;
  point.fits = !plan.shortage.has_value();
  point.peak_communication_bytes = plan.peak_communication_bytes;
  return point;
}

/// `plans`: the method's answer, then what it met besides.
ResultPtr make_result(const ScenarioPtr& scenario, const PlacementMethod& method, const std::string& parameters,
                      std::vector<PlacementPlanPtr> plans, double search_s, bool stopped) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->method = method.name;
  result->method_options = parameters;
  result->clock = Clock::simulated;
  result->search_s = search_s;
  if (stopped) result->notes.push_back(kStoppedNote);
  if (std::string said = how_it_came_about(*plans.front()); !said.empty())
    result->explanations.push_back(std::move(said));
  if (scenario->tasks)
    if (std::string said = describe_task_speeds(*scenario); !said.empty())
      result->explanations.push_back(std::move(said));
  plans = frontier_of(std::move(plans));
  for (const PlacementPlanPtr& plan : plans) result->points.push_back(point_of(*plan));
  if (plans.size() > 1)
    find_marks(*result);
  else if (result->points.front().fits)
    result->near_best = 0;
  result->plans = std::make_shared<Placements>(std::move(plans));
  return result;
}

/// What a method that learns has so far becomes results, now and then: for people, whom a second is soon enough.
class Live {
 public:
  Live(ScenarioPtr scenario, const PlacementMethod& method, const std::string& parameters, const PlacedGraph& placed,
       const PlacementRequest& request)
      : scenario_(std::move(scenario)), method_(method), parameters_(parameters), placed_(placed), request_(request) {}

  /// The same, with a LiveSearch for its detail where it has a Learning for it.
  Progress with_best(const Progress& progress) {
    const auto learning = std::dynamic_pointer_cast<const Learning>(progress.detail);
    if (!learning) return progress;
    const auto now = std::chrono::steady_clock::now();
    const Learning::Best best = learning->best();
    if (best.placement && (!so_far_ || (best.number != number_ && now - made_at_ >= kEvery))) {
      if (auto plan = simulated(begin_plan(method_.name, placed_, request_), *best.placement, request_, false)) {
        auto result =
            std::make_shared<Result>(*make_result(scenario_, method_, parameters_, {std::move(*plan)}, 0, false));
        result->notes.push_back(kNotEndedNote);
        so_far_ = std::move(result);
      }
      number_ = best.number;
      made_at_ = now;
    }
    Progress with = progress;
    with.detail = std::make_shared<LiveSearch>(learning, so_far_);
    return with;
  }

 private:
  static constexpr auto kEvery = std::chrono::seconds(1);
  const ScenarioPtr scenario_;
  const PlacementMethod& method_;
  const std::string& parameters_;
  const PlacedGraph& placed_;
  const PlacementRequest& request_;
  ResultPtr so_far_;
  std::uint64_t number_ = 0;
  std::chrono::steady_clock::time_point made_at_;
};

class PlacementSearcher : public Searcher {
 public:
  PlacementSearcher(const PlacementMethod& method, PlacementParameters parameters)
      : method_(method), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    if (last_ && last_->scenario == scenario && full_) return last_;
    const auto begin = std::chrono::steady_clock::now();
    context.report("task graph");
    auto placed = graph_to_place(*scenario, parameters_.graph);
    if (!placed) return placed.error();
    if (context.cancelled()) return cancelled_error();
    PlacementRequest request = placement_request(*scenario);
    const bool again = pass == SearchPass::coarse && same_tasks(*placed->graph, request);
    if (!again) request.resume = std::exchange(resume_, nullptr);
    auto plans = again ? simulate_again(*placed, request) : place(scenario, *placed, request, context);
    if (!plans) return plans.error();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const bool stopped = !again && placement::stopped_early(*plans->front());
    last_ = make_result(scenario, method_, parameters_.text, std::move(*plans), seconds, stopped);
    full_ = !again && !stopped;
    return last_;
  }

  void resume(std::shared_ptr<const std::string> state) override {
    resume_ = std::move(state);
    full_ = false;
  }

 private:
  using Plans = Expected<std::vector<PlacementPlanPtr>>;

  /// The one that is fastest of those that fit, or of all.
  PlacementPlanPtr placed_last() const {
    const std::size_t point = last_->fastest_that_fits().value_or(last_->points.size() - 1);
    return std::get<PlacementPlanPtr>(last_->plans->plan(point));
  }

  bool same_tasks(const TaskGraph& graph, const PlacementRequest& request) const {
    if (!last_) return false;
    const PlacementPlanPtr before = placed_last();
    const TaskGraph& old = *before->graph;
    return before->placement.devices == request.devices && old.task_count() == graph.task_count() &&
           old.out_begin == graph.out_begin && old.out_to == graph.out_to && old.colocate == graph.colocate;
  }

  Plans place(const ScenarioPtr& scenario, const PlacedGraph& placed, const PlacementRequest& request,
              const RunContext& context) {
    auto plan = begin_plan(method_.name, placed, request);
    Live live{scenario, method_, parameters_.text, placed, request};
    RunContext watched = context;
    if (context.progress)
      watched.progress = [&](const Progress& progress) { context.progress(live.with_best(progress)); };
    auto found = placement::run_placement(method_, *plan->graph, request, watched, parameters_.own);
    if (!found) return found.error();
    std::vector<Placement> others = std::exchange(found->others, {});
    static_cast<SimulatedPlacement&>(*plan) = std::move(*found);
    std::vector<PlacementPlanPtr> plans{std::move(plan)};
    for (Placement& other : others) {
      if (context.cancelled() && placement::stopped_early(*plans.front())) break;
      if (context.cancelled()) return cancelled_error();
      auto simulated_other = simulated(begin_plan(method_.name, placed, request), std::move(other), request, true);
      if (!simulated_other) return simulated_other.error();
      plans.push_back(std::move(*simulated_other));
    }
    return plans;
  }

  /// The placements found last on links, devices and times of now.
  Plans simulate_again(const PlacedGraph& placed, const PlacementRequest& request) {
    const PlacementPlanPtr answer = placed_last();
    std::vector<PlacementPlanPtr> before{answer}, plans;
    for (std::size_t point = 0; point < last_->points.size(); ++point)
      if (auto one = std::get<PlacementPlanPtr>(last_->plans->plan(point)); one != answer)
        before.push_back(std::move(one));
    for (const PlacementPlanPtr& one : before) {
      auto now = simulated(begin_plan(method_.name, placed, request), one->placement, request, false);
      if (!now) return now.error();
      plans.push_back(std::move(*now));
    }
    return plans;
  }

  const PlacementMethod& method_;
  const PlacementParameters parameters_;
  std::shared_ptr<const std::string> resume_;
  ResultPtr last_;
  bool full_ =
      false;  ///< last_ is an answer to its scenario, not one that was stopped or an older placement simulated under it
};

std::string refusal_with(const PlacementMethod& method, const Scenario& scenario, std::string_view text) {
  const auto parameters = read_placement_parameters(method, text);
  if (!parameters) return parameters.error().what;
  if (scenario.tasks && !parameters->of_the_graph.empty())
    return fmt::format("takes {} for models alone: a task graph is what it is", parameters->of_the_graph);
  return method.unavailable ? method.unavailable() : std::string();
}

Expected<std::unique_ptr<Searcher>> make_placement_searcher(const PlacementMethod& method, std::string_view text) {
  auto parameters = read_placement_parameters(method, text);
  if (!parameters) return parameters.error();
  return std::unique_ptr<Searcher>(std::make_unique<PlacementSearcher>(method, std::move(*parameters)));
}

std::vector<OptionRecord> all_options(const PlacementMethod& method) {
  std::vector<OptionRecord> all = method.options;
  all.insert(all.end(), graph_options().begin(), graph_options().end());
  return all;
}

Method entry_of(const PlacementMethod& placed) {
  return {
      .name = placed.name,
      .title = placed.title,
      .paper = placed.paper,
      .description = placed.description,
      .frontier = placed.frontier,
      .places = true,
      .on_by_default = placed.on_by_default,
      .default_method = placed.default_method,
      .for_comparison = placed.for_comparison,
      .options = all_options(placed),
      .make_with = [&placed](std::string_view text) { return make_placement_searcher(placed, text); },
      .refuses_with = [&placed](const Scenario& scenario,
                                std::string_view text) { return refusal_with(placed, scenario, text); },
  };
}

}  // namespace

bool stopped_early(const Result& result) {
  return std::find(result.notes.begin(), result.notes.end(), kStoppedNote) != result.notes.end();
}
bool has_not_ended(const Result& result) {
  return std::find(result.notes.begin(), result.notes.end(), kNotEndedNote) != result.notes.end();
}

std::vector<Method> placement_search_methods() {
  std::vector<Method> entries;
  for (const PlacementMethod& placed : placement::placement_methods()) entries.push_back(entry_of(placed));
  return entries;
}

}  // namespace turnpoint::search
