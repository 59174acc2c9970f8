// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/partition_methods.h"

#include <fmt/format.h>
#include <chrono>
#include <optional>

#include "core/plan/one_plan.h"
#include "core/plan/ratio_evaluator.h"
#include "core/schedule/simulated_points.h"
#include "core/search/accpar/equal_halves.h"
#include "core/search/accpar/reruns.h"
#include "core/search/accpar/unequal_halves.h"
#include "core/search/baselines/restricted.h"
#include "core/search/frontier_tracking/run_again.h"
#include "core/search/frontier_tracking/sharding_run.h"
#include "core/search/method/ratio_result.h"

namespace turnpoint::search {

namespace {

using namespace accpar;

constexpr std::string_view kProgrammes[] = {"published", "exact"}, kObjectives[] = {"volume", "time"},
                           kRatios[] = {"equal", "paper", "exact"}, kRecompute[] = {"none", "all", "needed"};

OptionRecord recompute_option() {
  return {"recompute",
          "Recompute",
          "",
          OptionType::choice,
          0,
          0,
          0,
          kRecompute,
          "What runs again in backward instead of being kept: as little as makes every device have room (needed), or, "
          "of nine amounts from nothing to all that can be spared, the one with the lowest peak (all)"};
}

const std::vector<OptionRecord>& rivals_options() {
  static const std::vector<OptionRecord> kOptions = {recompute_option()};
  return kOptions;
}

Recompute recompute_of(const Parameters& parameters) {
  return parameters.choice("recompute") == "needed" ? Recompute::needed
         : parameters.choice("recompute") == "all"  ? Recompute::all
                                                    : Recompute::none;
}

const std::vector<OptionRecord>& accpar_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"programme", "Types by", "", OptionType::choice, 0, 1, 0, kProgrammes,
       "The paper's dynamic programme, for chains and forks, or the exact one for any graph, which looks a level ahead "
       "where choices are equal"},
      {"objective", "Least", "", OptionType::choice, 0, 1, 0, kObjectives,
       "Elements that halves exchange, or seconds with the devices' arithmetic"},
      {"ratio", "Shares", "", OptionType::choice, 0, 2, 0, kRatios,
       "Of unlike halves: equal ones, the paper's formula, or those that balance the halves' own times"},
      recompute_option(),
  };
  return kOptions;
}

/// One way to choose types and shares.
struct Candidate {
  std::string_view whose;  ///< "HyPar's"
  Options options;
};

/// AccPar's own first, then those that it is compared with: its count of what halves exchange and compute knows neither
/// latencies nor memory bandwidths, so that another's choice may be faster in the end.
std::vector<Candidate> with_rivals(const Options& own) {
  std::vector<Candidate> all = {{"AccPar's own", own}};
  for (const Ratio ratio : {Ratio::paper, Ratio::equal}) {
    all.push_back(all.front());
    all.back().whose = ratio == Ratio::paper ? "AccPar's with the paper's shares" : "AccPar's with equal shares";
    all.back().options.ratio = ratio;
  }
  all.push_back({"HyPar's", Options::hypar()});
  all.push_back({"One Weird Trick's", Options::one_weird_trick()});
  all.push_back({"data parallelism's", Options::data_parallel()});
  return all;
}

class Partitioned : public Searcher {
 public:
  Partitioned(std::string name, std::vector<Candidate> candidates, Recompute recompute, std::string parameters)
      : name_(std::move(name)),
        candidates_(std::move(candidates)),
        recompute_(recompute),
        parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto begin = std::chrono::steady_clock::now();
    auto layers = layers_of(*scenario->model);
    if (!layers) return layers.error();
    const bool equal = accpar::in_equal_halves(*scenario->cluster);
    const bool windows = scenario->settings.split_windows;
    equal ? keep_whole_halves(*scenario->model, windows, *layers) : keep_splittable(*scenario->model, windows, *layers);
    const auto devices = bisect(tree_of_devices(*scenario));
    if (!devices) return devices.error();
    std::optional<Found> best;
    std::string_view whose;
    for (Candidate& one : candidates_) {
      one.options.bytes_per_element = scenario->settings.precision == Precision::fp32 ? 4 : 2;
      const auto found = equal ? as_sharding_plan(scenario, *layers, *devices, one.options, context)
                               : as_ratio_plan(scenario, *layers, *devices, one.options, best, context);
      // A rival may lack a type for some layer; the method's own failure is the answer.
      if (!found && (!best || found.error().code == ErrorCode::cancelled)) return placed(found.error(), *scenario);
      if (!found || (best && !better(*found, *best))) continue;
      best = *found;
      whose = one.whose;
    }
    auto named = std::make_shared<Result>(*best->result);
    if (equal) named->plans = std::make_shared<GivenPlan>(with_followers(named->plans->sharding(0), *layers));
    named->method = name_, named->method_options = parameters_;
    named->search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    named->explanations.push_back(fmt::format(
        "{} of {} operators are cut as layers, by their types; every other is split as its layer leaves its result.",
        layers->operators.size(), scenario->model->operators.size()));
    if (!named->points.front().fits && recompute_ == Recompute::none)
      named->explanations.push_back(fmt::format(
          "Not every device has room; with {}:recompute operators run again in backward instead of being kept.",
          name_));
    if (candidates_.size() > 1)
      named->explanations.push_back(fmt::format("Of several assignments, {} is the fastest here.", whose));
    return ResultPtr(named);
  }

 private:
  /// What ratio plans say in themselves: whose split an operator takes over.
  static Plan with_followers(Plan plan, const ModelLayers& layers) {
    for (PlanOperator& op : plan.operators)
      if (layers.follows(op.op)) op.follows = layers.operators[layers.layer_of[op.op]];
    return plan;
  }

  /// What is wrong with layers says of which model, and by which method.
  Error placed(Error error, const Scenario& scenario) const {
    const Model& model = *scenario.model;
    if (error.where.empty() && error.code != ErrorCode::cancelled)
      error.where = fmt::format("{}: method {}", model.source.empty() ? model.name : model.source, name_);
    return error;
  }

  struct Found {
    ResultPtr result;
    bool has_room = true;  ///< where as little runs again as is needed
  };

  static bool better(const Found& one, const Found& other) {
    if (one.has_room != other.has_room) return one.has_room;
    return one.result->points.front().time_s < other.result->points.front().time_s * (1 - 1e-9);
  }

  Expected<Found> as_sharding_plan(const ScenarioPtr& scenario, const ModelLayers& layers, const Bisection& devices,
                                   const Options& options, const RunContext& context) const {
    const auto assignment = accpar::search(layers.graph, devices, options, context);
    if (!assignment) return assignment.error();
    const auto configurations =
        configurations_of(*scenario->model, make_mesh(*scenario->cluster), scenario->settings.split_windows, layers,
                          types_by_level(*assignment));
    if (!configurations) return configurations.error();
    SearchSpace space;
    space.only = [&](OperatorId id, const Operator&, const Mesh&) {
      return std::vector<Configuration>{(*configurations)[id]};
    };
    space.choice = MemoryChoice{};
    // What a cut moves is exchanged by its halves alone, cut by cut: no engine gathers whole tensors for it.
    const auto plain = fastest_with(name_, scenario, space, ReshardingModel::Ways::cheapest, context);
    if (!plain) return plain.error();
    if (recompute_ == Recompute::none) return Found{*plain, true};
    if (recompute_ == Recompute::needed) {
      const auto room = has_room(**plain, 0, context);
      if (!room) return room.error();
      if (*room) return Found{*plain, true};
    }
    space.choice.reset();
    return of_frontier(scenario, space, context);
  }

  // On equal devices ft's frontier over what runs again, with these splits, has the plan that is wanted.
  Expected<Found> of_frontier(const ScenarioPtr& scenario, const SearchSpace& space, const RunContext& context) const {
    const auto all = frontier_over_reruns(name_, scenario, space, context);
    if (!all) return all.error();
    const auto point = recompute_ == Recompute::all ? least_peak_of(**all, context) : with_room(**all, context);
    if (!point) return point.error();
    const auto room = has_room(**all, *point, context);
    if (!room) return room.error();
    return Found{only_point(*all, scenario, *point), *room};
  }

  // Where none has room, the one with the least peak.
  static Expected<std::size_t> with_room(const Result& all, const RunContext& context) {
    const auto last = last_with_room(all, context);
    if (!last) return last.error();
    return *last ? Expected<std::size_t>(**last) : least_peak_of(all, context);
  }

  // Of a few along the frontier; of equal ones the fastest.
  static Expected<std::size_t> least_peak_of(const Result& all, const RunContext& context) {
    constexpr std::size_t kParts = 8;
    if (all.scenario->settings.accounting == Accounting::paper) return std::size_t(0);
    std::vector<std::size_t> some;
    for (std::size_t part = 0; part <= kParts; ++part) some.push_back((all.points.size() - 1) * part / kParts);
    const auto costs = simulate_points(all, some, context);
    if (!costs) return costs.error();
    std::size_t best = 0;
    for (std::size_t i = 1; i < some.size(); ++i)
      if ((*costs)[i].memory_bytes <= (*costs)[best].memory_bytes) best = i;
    return some[best];
  }

  Expected<Found> as_ratio_plan(const ScenarioPtr& scenario, const ModelLayers& layers, const Bisection& devices,
                                const Options& options, const std::optional<Found>& best,
                                const RunContext& context) const {
    const auto assignment = accpar::search(layers.graph, devices, options, context);
    if (!assignment) return assignment.error();
    auto plan = evaluate_ratio_plan(*scenario, ratio_plan_of(*scenario, devices, *assignment, layers));
    if (!plan) return plan.error();
    // Second runs make no plan faster: one that is slower already need not be looked at.
    const bool too_slow = best && best->has_room && plan->cost.time_s() >= best->result->points.front().time_s;
    auto made = with_reruns(*scenario, std::move(*plan), too_slow ? Recompute::none : recompute_, context);
    if (!made) return made.error();
    const std::string said = describe_reruns(*scenario, made->plan);
    auto result = result_of(scenario, std::move(made->plan));
    if (!said.empty()) result->explanations.push_back(said + '.');
    return Found{ResultPtr(std::move(result)), made->has_room};
  }

  std::string name_;
  std::vector<Candidate> candidates_;
  Recompute recompute_;
  std::string parameters_;
};

Expected<std::unique_ptr<Searcher>> alone(const char* name, const Options& options, std::string_view text) {
  const auto parameters = read_parameters(fmt::format("method {}", name), rivals_options(), text);
  if (!parameters) return parameters.error();
  return std::unique_ptr<Searcher>(std::make_unique<Partitioned>(name, std::vector<Candidate>{{name, options}},
                                                                 recompute_of(*parameters), std::string(text)));
}

std::string partition_refuses(const Scenario& scenario) {
  return scenario.settings.precision == Precision::fp8 && !accpar::in_equal_halves(*scenario.cluster)
             ? "shares of unlike or odd halves are not priced in 8 bits"
             : std::string();
}

bool in_unlike_parts(const Scenario& scenario) { return !accpar::in_equal_halves(*scenario.cluster); }

std::string rival_refuses(const Scenario& scenario, std::string_view text) {
  const auto parameters = read_parameters("it", rivals_options(), text);
  return parameters ? partition_refuses(scenario) : parameters.error().what;
}

MethodTraits traits_with(const Expected<Parameters>& parameters) {
  return {.recomputes = parameters && recompute_of(*parameters) != Recompute::none};
}

Expected<Parameters> read_accpar(std::string_view text) {
  return read_parameters("method accpar", accpar_options(), text);
}

Expected<std::unique_ptr<Searcher>> make_accpar(std::string_view text) {
  const auto parameters = read_accpar(text);
  if (!parameters) return parameters.error();
  Options options = Options::accpar();
  options.ratio = parameters->choice("ratio") == "equal"   ? Ratio::equal
                  : parameters->choice("ratio") == "paper" ? Ratio::paper
                                                           : Ratio::exact;
  if (parameters->choice("programme") == "published") options.programme = Programme::published;
  if (parameters->choice("objective") == "volume") options.objective = Objective::volume;
  // What is asked for in a way of its own stands by itself.
  const bool own_way =
      parameters->written("programme") || parameters->written("objective") || parameters->written("ratio");
  auto candidates = own_way ? std::vector<Candidate>{{"AccPar's own", options}} : with_rivals(options);
  return std::unique_ptr<Searcher>(
      std::make_unique<Partitioned>("accpar", std::move(candidates), recompute_of(*parameters), std::string(text)));
}

}  // namespace

Method accpar_method() {
  return {
      .name = "accpar",
      .title = "AccPar",
      .paper = "AccPar, HPCA 2020",
      .description = "Devices cut into halves, at every cut each layer by batch, reduction or output",
      .options = accpar_options(),
      .refuses = &partition_refuses,
      .ratio_plans = &in_unlike_parts,
      .make_with = &make_accpar,
      .refuses_with =
          [](const Scenario& scenario, std::string_view text) {
            const auto parameters = read_accpar(text);
            return parameters ? partition_refuses(scenario) : parameters.error().what;
          },
      .traits = [](std::string_view text) { return traits_with(read_accpar(text)); },
  };
}

Method hypar_method() {
  return {
      .name = "hypar",
      .title = "HyPar",
      .paper = "HyPar, HPCA 2019",
      .description = "Devices cut into halves, at every cut each layer by batch or reduction, least volume exchanged",
      .options = rivals_options(),
      .refuses = &partition_refuses,
      .ratio_plans = &in_unlike_parts,
      .make_with = [](std::string_view text) { return alone("hypar", Options::hypar(), text); },
      .refuses_with = &rival_refuses,
      .traits = [](std::string_view text) { return traits_with(read_parameters("", rivals_options(), text)); },
  };
}

Method owt_method() {
  return {
      .name = "owt",
      .title = "One Weird Trick",
      .short_name = "OWT",
      .paper = "Krizhevsky, arXiv 1404.5997",
      .description = "Convolutions by batch, fully connected layers by reduction",
      .options = rivals_options(),
      .refuses = &partition_refuses,
      .ratio_plans = &in_unlike_parts,
      .make_with = [](std::string_view text) { return alone("owt", Options::one_weird_trick(), text); },
      .refuses_with = &rival_refuses,
      .traits = [](std::string_view text) { return traits_with(read_parameters("", rivals_options(), text)); },
  };
}

}  // namespace turnpoint::search
