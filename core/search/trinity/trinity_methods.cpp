// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/trinity_methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "core/base/text.h"
#include "core/search/placement/memory_bound.h"
#include "core/search/placement/simple_methods.h"
#include "core/search/trinity/trainer.h"

namespace turnpoint::trinity {

namespace {

using placement::PlacementMethod;
using placement::PlacementRequest;

constexpr std::string_view kTrinity = "trinity", kHierarchical = "hierarchical";
constexpr std::string_view kBest = "best", kScratch = "scratch";
constexpr double kCalls = 4000, kMost = 1e9, kMostSeconds = 1e6;

/// What the parameters ask for; the graph decides the rest.
struct Asked {
  std::string_view method;
  std::string from;
  /// Their number is not said, and follows from the devices.
  bool groups_by_devices = false;
  Settings settings = {};
};

std::string names_of(const std::vector<PlacementMethod>& methods) {
  std::vector<std::string> names{std::string(kBest), std::string(kScratch)};
  for (const PlacementMethod& one : methods)
    if (one.name != kTrinity && one.name != kHierarchical) names.push_back(one.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Expected<void> check_from(KnownMethods known, const std::string& from) {
  if (from == kBest || from == kScratch) return {};
  const auto& methods = known();
  const bool found = std::any_of(methods.begin(), methods.end(), [&](const PlacementMethod& one) {
    return one.name == from && one.name != kTrinity && one.name != kHierarchical;
  });
  if (found) return {};
  return usage_error(fmt::format("learning cannot begin with '{}'; there are {}", from, names_of(methods)));
}

Expected<Asked> read_asked(KnownMethods known, std::string_view method, std::string_view text) {
  constexpr std::string_view kFrom = "from=";
  Asked asked{.method = method, .from = std::string(method == kTrinity ? kBest : kScratch)};
  std::vector<std::string_view> rest;
  bool from_written = false;
  for (const std::string_view part : split(text, ':')) {
    if (!part.starts_with(kFrom)) {
      rest.push_back(part);
      continue;
    }
    if (from_written) return usage_error(fmt::format("method {}: parameter 'from' is there twice", method));
    from_written = true;
    asked.from = part.substr(kFrom.size());
  }
  if (auto good = check_from(known, asked.from); !good) return good.error();
  const std::string own = fmt::format("{}", fmt::join(rest, ":"));
  const bool trinity = method == kTrinity;
  const auto parameters =
      read_parameters(fmt::format("method {}", method), trinity ? trinity_options() : hierarchical_options(), own);
  if (!parameters) return parameters.error();
  const bool paper = trinity && parameters->flag("paper");
  if (paper && !from_written) asked.from = kScratch;
  Settings& s = asked.settings;
  if (paper) s = printed_settings();
  if (!trinity) s = hierarchical_settings(1);
  if (parameters->written("rollouts")) s.rollouts = std::size_t(parameters->integer("rollouts"));
  const int groups = parameters->integer("groups");
  asked.groups_by_devices = groups == 0 && !paper;
  if (groups > 0) s.groups = std::size_t(groups);
  if (parameters->written("hidden")) s.hidden = std::size_t(parameters->integer("hidden"));
  if (parameters->written("rate")) s.rate = parameters->number("rate");
  s.units = std::size_t(parameters->integer("units"));
  if (trinity) {
    s.weights.runtime = parameters->number("runtime-weight");
    s.weights.communication = parameters->number("communication-weight");
    s.weights.memory = parameters->number("memory-weight");
    s.weights.communication_tolerance = parameters->number("communication-tolerance");
    s.weights.memory_tolerance = parameters->number("memory-tolerance");
    if (auto good = s.weights.check(); !good) return good.error();
  }
  const double seconds = parameters->number("seconds");
  if (parameters->written("seconds") && !(seconds > 0))
    return usage_error(fmt::format("method {}: seconds must be above 0, since nothing is learnt in no time", method));
  if (parameters->written("iterations")) s.budget.iterations = std::uint64_t(parameters->number("iterations"));
  if (seconds > 0) s.budget.seconds = seconds;
  if (parameters->written("calls") || (!s.budget.iterations && !s.budget.seconds))
    s.budget.calls = std::uint64_t(parameters->number("calls"));
  return asked;
}

struct Start {
  std::string name;
  SimulatedPlacement placed;
  placement::Verdict verdict;
};

/// How often a method runs to be begun with: as it does unasked and, where it has a budget of calls too, once more with
/// Trinity's own, since a search is not always better for more calls.
std::vector<std::string> runs_of(const PlacementMethod& method, const Budget& budget) {
  std::vector<std::string> parameters{""};
  const bool counts_calls = std::any_of(method.options.begin(), method.options.end(),
                                        [](const OptionRecord& option) { return option.key == "calls"; });
  if (!counts_calls || !budget.calls) return parameters;
  parameters.push_back(fmt::format("calls={}", *budget.calls));
  if (budget.seconds) parameters.back() += fmt::format(":seconds={}", *budget.seconds);
  return parameters;
}

/// The best answer of the methods asked for, judged alike. Those that fail are left out: one answer is enough.
Expected<std::optional<Start>> start_of(KnownMethods known, const Asked& asked, const TaskGraph& graph,
                                        const PlacementRequest& request, const RunContext& context) {
  const std::string& from = asked.from;
  RunContext quiet = context;
  quiet.progress = nullptr;
  placement::Judge judge(graph, request);
  std::optional<Start> best;
  for (const PlacementMethod& method : known()) {
    if (method.name == kTrinity || method.name == kHierarchical) continue;
    if (from == kBest ? method.for_comparison : method.name != from) continue;
    if (method.unavailable && !method.unavailable().empty()) continue;
    for (const std::string& parameters : runs_of(method, asked.settings.budget)) {
      const std::string name = parameters.empty() ? method.title : fmt::format("{} ({})", method.title, parameters);
      context.report(fmt::format("to begin with: {}", name).c_str());
      const auto run = placement::run_of(method, parameters);
      if (!run) return run.error();
      auto placed = (*run)(graph, request, quiet);
      // Whoever is stopped has what came before, and what this method had until then.
      if (!placed && context.cancelled())
        return best ? Expected<std::optional<Start>>(std::move(best)) : cancelled_error();
      if (!placed && from != kBest) return placed.error();
      if (!placed) continue;
      const auto verdict = judge.measure(placed->placement);
      if (!verdict) return verdict.error();
      const bool stopped = placement::stopped_early(*placed);
      if (!best || verdict->better_than(best->verdict, request.objective))
        best = Start{stopped ? name + std::string(placement::kStoppedEarly) : name, std::move(*placed), *verdict};
      if (context.cancelled()) return best;
    }
  }
  if (!best && from != kScratch && from != kBest)
    return usage_error(fmt::format("method '{}' is not available, so that learning cannot begin with it", from));
  return best;
}

/// What was begun with, if anything, and what became of it.
SimulatedPlacement answer_of(Learnt learnt) {
  SimulatedPlacement result;
  if (learnt.begun) {
    result.origin = fmt::format("the answer of {}", learnt.begun->name);
    result.stages.push_back({result.origin, learnt.begun->makespan_s});
  }
  result.stages.push_back({fmt::format("learnt, {} placements in {} iterations{}", learnt.calls, learnt.iterations,
                                       learnt.stopped ? placement::kStoppedEarly : std::string_view()),
                           learnt.best.verdict.makespan_s});
  result.placement = std::move(learnt.best.placement);
  return result;
}

/// Stopped before learning.
SimulatedPlacement answer_of(Start start) {
  Learnt learnt;
  learnt.stopped = true;
  learnt.begun = Begun{start.name, start.verdict.makespan_s};
  learnt.best.placement = std::move(start.placed.placement);
  learnt.best.verdict = std::move(start.verdict);
  return answer_of(std::move(learnt));
}

Expected<SimulatedPlacement> run_learning(KnownMethods known, const Asked& asked, const TaskGraph& graph,
                                          const PlacementRequest& request, const RunContext& context) {
  if (graph.task_count() == 0 || request.devices == 1) return placement::run_single_device(graph, request, context);
  std::optional<Start> start;
  if (asked.from != kScratch && !request.resume) {
    auto found = start_of(known, asked, graph, request, context);
    if (!found) return found.error();
    start = std::move(*found);
    if (start && context.cancelled()) return answer_of(std::move(*start));
  }
  // No search helps where nothing can fit, and what there is says best how much is missing.
  if (!placement::never_fits(graph, request).empty()) {
    if (start) return std::move(start->placed);
    return placement::run_single_device(graph, request, context);
  }
  Settings settings = asked.settings;
  settings.tries_joinings = settings.joined_groups;
  if (asked.groups_by_devices && asked.method == kHierarchical)
    settings.groups = hierarchical_settings(request.devices).groups;
  // Convolutional networks in micro-batches are faster in more and smaller pieces, recurrent ones in fewer: none of
  // these numbers suits both (tests/bench/trinity_bench.cpp, --gap).
  if (asked.groups_by_devices && settings.joined_groups)
    for (const std::size_t for_each : {4, 8, 16}) settings.tried_groups.push_back(for_each * request.devices);
  const Beginning begin =
      start ? Beginning(&start->placed.placement, {start->name, start->verdict.makespan_s}) : Beginning(nullptr);
  auto learnt = learn(graph, request, settings, begin, context);
  if (!learnt) return learnt.error();
  return answer_of(std::move(*learnt));
}

Expected<Run> run_for(KnownMethods known, std::string_view method, std::string_view parameters) {
  auto asked = read_asked(known, method, parameters);
  if (!asked) return asked.error();
  return Run([known, asked = std::move(*asked)](const TaskGraph& graph, const PlacementRequest& request,
                                                const RunContext& context) {
    return run_learning(known, asked, graph, request, context);
  });
}

}  // namespace

const std::vector<OptionRecord>& trinity_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"calls",
       "Simulations",
       "",
       OptionType::integer,
       1,
       kCalls,
       kMost,
       {},
       "Placements that learning simulates; the same number finds the same answer. What learning begins with comes "
       "before them and is not counted: a search with a budget of calls runs as by default, and with as many as this"},
      {"iterations",
       "Iterations",
       "",
       OptionType::integer,
       1,
       kMost,
       kMost,
       {},
       "Batches of placements instead, or, with calls, whichever ends first"},
      {"seconds",
       "Time",
       "s",
       OptionType::real,
       0,
       0,
       kMostSeconds,
       {},
       "Wall time instead, or whichever ends first; what is found then is not reproducible. 0: no limit"},
      {"paper",
       "Settings as printed",
       "",
       OptionType::flag,
       0,
       0,
       1,
       {},
       "Adam at 0.1, 256 groups, one ratio for all decisions, from nothing; diverges easily"},
      {"rollouts", "Placements per iteration", "", OptionType::integer, 1, 16, 256, {}, ""},
      {"groups",
       "Groups",
       "",
       OptionType::integer,
       0,
       0,
       1024,
       {},
       "Units are put into so many groups at most, and what learning begins with is taught to the networks first. 0: "
       "4, "
       "8 and 16 for each device are tried, and what learning begins with stands beside what is learnt"},
      {"hidden", "Memory of the schedule network", "", OptionType::integer, 1, 64, 1024, {}, ""},
      {"rate", "Learning rate", "", OptionType::real, 1e-6, 2e-3, 1, {}, "Of Adam"},
      {"units", "Units", "", OptionType::integer, 1, 2000, 20000, {}, "Larger graphs are joined to so many units"},
      {"runtime-weight", "Weight of the runtime", "per s", OptionType::real, 0, 0.5, 1e6, {}, ""},
      {"communication-weight",
       "Weight of communication",
       "per GB",
       OptionType::real,
       0,
       0.3,
       1e6,
       {},
       "Of what the busiest pair of devices sends above its tolerance"},
      {"memory-weight",
       "Weight of memory",
       "per GB",
       OptionType::real,
       0,
       0.2,
       1e6,
       {},
       "Of what the fullest device holds above its tolerance"},
      {"communication-tolerance", "Communication that costs nothing", "", OptionType::bytes, 1, 8e9, 1e18, {}, ""},
      {"memory-tolerance", "Memory that costs nothing", "", OptionType::bytes, 1, 8e9, 1e18, {}, ""},
  };
  return kOptions;
}

const std::vector<OptionRecord>& hierarchical_options() {
  static const std::vector<OptionRecord> kOptions = [] {
    std::vector<OptionRecord> options = trinity_options();
    std::erase_if(options, [](const OptionRecord& option) {
      return option.key == "paper" || option.key.ends_with("-weight") || option.key.ends_with("-tolerance");
    });
    for (OptionRecord& option : options)
      if (option.key == "groups")
        option.help = "Units are put into so many groups at most. 0: 20 for each device, at most 256";
    return options;
  }();
  return kOptions;
}

Expected<Run> trinity_run(KnownMethods known, std::string_view parameters) {
  return run_for(known, kTrinity, parameters);
}
Expected<Run> hierarchical_run(KnownMethods known, std::string_view parameters) {
  return run_for(known, kHierarchical, parameters);
}

PlacementMethod trinity_method(KnownMethods known) {
  return {
      .name = std::string(kTrinity),
      .title = "Trinity",
      .paper = "Trinity: neural network adaptive distributed parallel training, Algorithms 15(4):108, 2022",
      .description =
          "A policy learns to group tasks and to give groups devices, from the best placement of other methods, among "
          "them "
          "annealing with as many calls as learning has",
      .for_comparison = true,
      .options = trinity_options(),
      .run_with = [known](std::string_view parameters) { return trinity_run(known, parameters); },
  };
}

PlacementMethod hierarchical_method(KnownMethods known) {
  return {
      .name = std::string(kHierarchical),
      .title = "Hierarchical",
      .paper = "Mirhoseini et al., A Hierarchical Model for Device Placement, ICLR 2018",
      .description = "The same networks taught by the plain policy gradient from the runtime alone, from nothing",
      .for_comparison = true,
      .options = hierarchical_options(),
      .run_with = [known](std::string_view parameters) { return hierarchical_run(known, parameters); },
  };
}

}  // namespace turnpoint::trinity
