// SPDX-License-Identifier: Apache-2.0
#include "core/search/annealing/annealing_methods.h"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/search/placement/simple_methods.h"

namespace turnpoint::annealing {
namespace {

using placement::ListOptions;
using placement::Objective;
using placement::PlacementMethod;
using placement::PlacementRequest;
using placement::Random;
using placement::ScheduleCosts;

constexpr double kCalls = 20000, kMostCalls = 1e9, kMostSeconds = 1e6;
/// Where nobody says how many calls: no more than keep a graph of so many tasks busy as long as the usual number does.
constexpr double kUsualTasks = 10000, kFewestCalls = 100;

const std::vector<OptionRecord>& budget_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"calls",
       "Simulations",
       "",
       OptionType::integer,
       1,
       kCalls,
       kMostCalls,
       {},
       "Placements that are simulated; the same number finds the same answer. Fewer unless given where the graph has "
       "more than 10,000 tasks"},
      {"seconds",
       "Time",
       "s",
       OptionType::real,
       0,
       0,
       kMostSeconds,
       {},
       "Wall time instead, or, with calls, whichever ends first; what is found then is not reproducible. 0: no limit"},
  };
  return kOptions;
}

/// What is written of a budget; what is not follows from the graph.
struct Asked {
  std::optional<double> calls, seconds;
  Budget of(const TaskGraph& graph) const {
    Budget budget;
    if (seconds) budget.seconds = *seconds;
    const double tasks = std::max(1.0, double(graph.task_count()));
    if (calls)
      budget.calls = std::uint64_t(*calls);
    else if (!seconds)
      budget.calls = std::uint64_t(std::max(kFewestCalls, kCalls * std::min(1.0, kUsualTasks / tasks)));
    return budget;
  }
};

Expected<Asked> read_budget(const std::string& method, std::string_view text) {
  const auto parameters = read_parameters("method " + method, budget_options(), text);
  if (!parameters) return parameters.error();
  Asked asked;
  if (parameters->written("calls")) asked.calls = parameters->number("calls");
  if (parameters->written("seconds")) asked.seconds = parameters->number("seconds");
  if (asked.seconds && !(*asked.seconds > 0))
    return usage_error(fmt::format("method {}: seconds must be above 0, since nothing is found in no time", method));
  return asked;
}

/// Cheap placements of several kinds.
std::vector<Placement> starts_of(const ScheduleCosts& costs, const PlacementRequest& request,
                                 const RunContext& context) {
  const TaskGraph& graph = costs.graph();
  std::vector<Placement> starts;
  const auto add = [&](Expected<SimulatedPlacement> made) {
    if (made) starts.push_back(std::move(made->placement));
  };
  add(placement::run_single_device(graph, request, context));
  std::vector<std::int64_t> room;
  for (std::uint32_t d = 0; d < request.devices; ++d) room.push_back(request.limit_of(graph, d));
  const auto order = placement::order_by_priority(costs, placement::bottom_levels(costs, 1.0));
  for (const double affinity : {0.0, 0.05, 0.3, 1.0, 4.0}) {
    ListOptions options;
    options.affinity = affinity;
    options.insertion = true;
    if (request.limited(graph)) options.room = &room;
    auto made = placement::list_schedule(costs, order, options, context).placement;
    if (!made.device.empty()) starts.push_back(std::move(made));
  }
  add(placement::run_layered_expert(graph, request, context));
  if (graph.task_count() <= 20000) add(placement::run_pipedream(graph, request, context));
  return starts;
}

using Measured = std::pair<Placement, placement::Verdict>;

/// The better of what the walk found and of the starts as they are, whose orders no ranks may give.
Expected<Measured> best_of(const Walk& walk, const TaskGraph& graph, const PlacementRequest& request,
                           std::vector<Placement> starts) {
  placement::Judge judge(graph, request);
  starts.insert(starts.begin(), walk.best_placement());
  std::optional<placement::Verdict> best;
  std::size_t which = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    auto verdict = judge.measure(starts[i]);
    if (!verdict) return verdict.error();
    if (best && !verdict->better_than(*best, request.objective)) continue;
    best = std::move(*verdict);
    which = i;
  }
  return Measured(std::move(starts[which]), std::move(*best));
}

/// How many placements were tried, and whether the user stopped it before its budget was spent.
SimulatedPlacement answer_of(const char* how, std::uint64_t calls, bool stopped, Placement placement,
                             double makespan_s) {
  SimulatedPlacement result;
  result.placement = std::move(placement);
  result.stages.push_back({fmt::format("{}, {} placement{}{}", how, calls, calls == 1 ? "" : "s",
                                       stopped ? placement::kStoppedEarly : std::string_view()),
                           makespan_s});
  return result;
}

Expected<SimulatedPlacement> run_annealing(const TaskGraph& graph, const PlacementRequest& request,
                                           const Budget& budget, const RunContext& context) {
  if (graph.task_count() == 0) return placement::run_single_device(graph, request, context);
  context.report("first placements");
  const ScheduleCosts costs(graph, request.devices);
  auto starts = starts_of(costs, request, context);
  if (context.cancelled()) return cancelled_error();
  Walk walk(costs, request, request.met);
  if (auto done = anneal(walk, starts, request.seed, budget, 0, context); !done) return done.error();
  const bool stopped = context.cancelled();
  auto best = best_of(walk, graph, request, std::move(starts));
  if (!best) return best.error();
  return answer_of("annealed", walk.measurements(), stopped, std::move(best->first), best->second.makespan_s);
}

Expected<SimulatedPlacement> run_random(const TaskGraph& graph, const PlacementRequest& request, const Budget& budget,
                                        const RunContext& context) {
  if (graph.task_count() == 0) return placement::run_single_device(graph, request, context);
  const ScheduleCosts costs(graph, request.devices);
  Walk walk(costs, request, request.met);
  Random random(request.seed ^ 0x5CA77E);
  Spending spending(budget, "placements at random", 0, context);
  do {
    if (context.cancelled() && walk.measurements() == 0) return cancelled_error();
    if (context.cancelled()) break;
    walk.scatter(random);
    // Once something fits, nothing slower is of use.
    walk.measure(walk.best().missing_bytes == 0 ? walk.best().objective_s : std::numeric_limits<double>::infinity());
  } while (spending.part(walk.measurements()) < 1);
  const bool stopped = context.cancelled();
  auto best = best_of(walk, graph, request, {});
  if (!best) return best.error();
  return answer_of("drawn at random", walk.measurements(), stopped, std::move(best->first), best->second.makespan_s);
}

using RunBudget = Expected<SimulatedPlacement> (*)(const TaskGraph&, const PlacementRequest&, const Budget&,
                                                   const RunContext&);

auto within_budget(const char* name, RunBudget run) {
  return [name, run](std::string_view text) -> Expected<PlacementMethod::Run> {
    const auto asked = read_budget(name, text);
    if (!asked) return asked.error();
    return PlacementMethod::Run(
        [asked = *asked, run](const TaskGraph& graph, const PlacementRequest& request, const RunContext& context) {
          return run(graph, request, asked.of(graph), context);
        });
  };
}

}  // namespace

std::uint64_t stage_calls(const TaskGraph& graph) {
  constexpr double kASecond = 2e7;                            // tasks and edges that are simulated in it
  constexpr double kTasksOfASecond = 5000, kMostSeconds = 2;  // what a person waits for without being told
  constexpr double kCallsPerTask = 50, kFewest = 100;  // calls: enough of a small graph; too few for a walk to cool
  const double tasks = double(graph.task_count());
  const double work = kASecond * std::clamp(tasks / kTasksOfASecond, 1.0, kMostSeconds);
  const double calls = work / (tasks + double(graph.edge_count()) + 1);
  return calls < kFewest ? 0 : std::uint64_t(std::min(calls, kCallsPerTask * tasks));
}

namespace {

/// One of several beginnings, with what a walk from there has found.
struct Begun {
  std::unique_ptr<Walk> walk;
  std::size_t start;  // of the placements that were given
};

/// One more beginning for every hundred calls, so that each cools at all; at most four.
std::vector<Begun> beginnings(const ScheduleCosts& costs, const PlacementRequest& request, std::uint64_t calls,
                              const std::vector<const Placement*>& starts) {
  constexpr std::size_t kMost = 4;
  constexpr std::uint64_t kCallsOfOneMore = 100;
  std::vector<Begun> begun;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (begun.size() == kMost || begun.size() * kCallsOfOneMore > calls) break;
    const bool known = std::any_of(begun.begin(), begun.end(),
                                   [&](const Begun& one) { return starts[one.start]->device == starts[i]->device; });
    if (!known) begun.push_back({std::make_unique<Walk>(costs, request, request.met), i});
  }
  return begun;
}

}  // namespace

Expected<std::size_t> improve(const ScheduleCosts& costs, placement::Judge& judge, const PlacementRequest& request,
                              std::uint64_t calls, const std::vector<const Placement*>& others, Placement& placement,
                              placement::Verdict& verdict, const RunContext& context) {
  std::size_t won = 0;
  if (calls == 0 || costs.graph().task_count() == 0) return won;
  const Placement first = placement;
  std::vector<const Placement*> starts{&first};
  starts.insert(starts.end(), others.begin(), others.end());
  std::vector<Begun> begun = beginnings(costs, request, calls, starts);
  for (std::uint64_t round = 0, left = calls;; ++round) {
    // All that is left for the last; else half of it, shared by all that are still in.
    const std::uint64_t each = begun.size() == 1 ? left : left / 2 / begun.size();
    for (Begun& one : begun) {
      if (context.cancelled() && &one != begun.data()) break;
      const std::uint64_t before = one.walk->measurements();
      Budget budget;
      budget.calls = before + each;
      const Placement from = round == 0 ? *starts[one.start] : one.walk->best_placement();
      if (auto done = anneal(*one.walk, {from}, request.seed + round, budget, 0.9, context); !done) return done.error();
      left -= std::min(left, one.walk->measurements() - before);
    }
    std::stable_sort(begun.begin(), begun.end(),
                     [](const Begun& a, const Begun& b) { return a.walk->best().better_than(b.walk->best()); });
    const Placement& best = begun.front().walk->best_placement();
    auto found = judge.measure(best);
    if (!found) return found.error();
    if (found->better_than(verdict, request.objective)) {
      placement = best;
      verdict = std::move(*found);
      won = begun.front().start;
    }
    if (begun.size() == 1 || context.cancelled()) return won;
    begun.resize((begun.size() + 1) / 2);
  }
}

PlacementMethod simulated_annealing_method() {
  constexpr const char* kName = "simulated-annealing";
  return {
      .name = kName,
      .title = "Simulated annealing",
      .paper = "Kirkpatrick, Gelatt, Vecchi: Optimization by simulated annealing, Science 220 (1983)",
      .description =
          "Changes the best of several cheap placements step by step, most often where time is lost, and lets "
          "the simulator decide",
      .frontier = true,
      .options = budget_options(),
      .run_with = within_budget(kName, &run_annealing),
  };
}

PlacementMethod random_search_method() {
  constexpr const char* kName = "random-search";
  return {
      .name = kName,
      .title = "Random search",
      .paper = "for comparison",
      .description = "Draws placements at random and keeps the best: what a search has to beat",
      .for_comparison = true,
      .frontier = true,
      .options = budget_options(),
      .run_with = within_budget(kName, &run_random),
  };
}

}  // namespace turnpoint::annealing
