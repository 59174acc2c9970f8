// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/partition_methods.h"

#include <fmt/format.h>
#include <chrono>

#include "core/plan/ratio_evaluator.h"
#include "core/search/accpar/equal_halves.h"
#include "core/search/accpar/unequal_halves.h"
#include "core/search/baselines/restricted.h"
#include "core/search/method/ratio_result.h"

namespace turnpoint::search {

namespace {

using namespace accpar;

constexpr std::string_view kProgrammes[] = {"published", "exact"}, kObjectives[] = {"volume", "time"},
                           kRatios[] = {"equal", "paper", "exact"};

const std::vector<OptionRecord>& accpar_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"programme", "Types by", "", OptionType::choice, 0, 1, 0, kProgrammes,
       "The paper's dynamic programme, for chains and forks, or the exact one for any graph, which looks a level ahead "
       "where choices are equal"},
      {"objective", "Least", "", OptionType::choice, 0, 1, 0, kObjectives,
       "Elements that halves exchange, or seconds with the devices' arithmetic"},
      {"ratio", "Shares", "", OptionType::choice, 0, 2, 0, kRatios,
       "Of unlike halves: equal ones, the paper's formula, or those that balance the halves' own times"},
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
  Partitioned(std::string name, std::vector<Candidate> candidates, std::string parameters)
      : name_(std::move(name)), candidates_(std::move(candidates)), parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto begin = std::chrono::steady_clock::now();
    auto layers = layers_of(*scenario->model);
    if (!layers) return layers.error();
    const bool equal = accpar::in_equal_halves(*scenario->cluster);
    const bool windows = scenario->settings.split_windows;
    equal ? keep_whole_halves(*scenario->model, windows, *layers) : keep_splittable(*scenario->model, windows, *layers);
    const auto devices = bisect(tree_of_devices(*scenario));
    if (!devices) return devices.error();
    ResultPtr best;
    std::string_view whose;
    for (Candidate& one : candidates_) {
      one.options.bytes_per_element = scenario->settings.precision == Precision::fp32 ? 4 : 2;
      const auto result = equal ? as_sharding_plan(scenario, *layers, *devices, one.options, context)
                                : as_ratio_plan(scenario, *layers, *devices, one.options, context);
      // A rival may lack a type for some layer; the method's own failure is the answer.
      if (!result && (!best || result.error().code == ErrorCode::cancelled)) return result.error();
      if (!result || (best && (*result)->points.front().time_s >= best->points.front().time_s * (1 - 1e-9))) continue;
      best = *result;
      whose = one.whose;
    }
    auto named = std::make_shared<Result>(*best);
    named->method = name_, named->method_options = parameters_;
    named->search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (candidates_.size() > 1)
      named->explanations.push_back(fmt::format("Of several assignments, {} is the fastest here.", whose));
    return ResultPtr(named);
  }

 private:
  Expected<ResultPtr> as_sharding_plan(const ScenarioPtr& scenario, const ModelLayers& layers, const Bisection& devices,
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
    return fastest_with(name_, scenario, space, ReshardingModel::Ways::cheapest, context);
  }

  Expected<ResultPtr> as_ratio_plan(const ScenarioPtr& scenario, const ModelLayers& layers, const Bisection& devices,
                                    const Options& options, const RunContext& context) const {
    const auto assignment = accpar::search(layers.graph, devices, options, context);
    if (!assignment) return assignment.error();
    auto plan = evaluate_ratio_plan(*scenario, ratio_plan_of(*scenario, devices, *assignment, layers));
    if (!plan) return plan.error();
    return ResultPtr(result_of(scenario, std::move(*plan)));
  }

  std::string name_;
  std::vector<Candidate> candidates_;
  std::string parameters_;
};

std::unique_ptr<Searcher> alone(const char* name, const Options& options) {
  return std::make_unique<Partitioned>(name, std::vector<Candidate>{{name, options}}, std::string());
}

std::string partition_refuses(const Scenario& scenario) {
  return scenario.settings.precision == Precision::fp8 && !accpar::in_equal_halves(*scenario.cluster)
             ? "shares of unlike or odd halves are not priced in 8 bits"
             : std::string();
}

bool in_unlike_parts(const Scenario& scenario) { return !accpar::in_equal_halves(*scenario.cluster); }

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
  auto candidates = text.empty() ? with_rivals(options) : std::vector<Candidate>{{"AccPar's own", options}};
  return std::unique_ptr<Searcher>(std::make_unique<Partitioned>("accpar", std::move(candidates), std::string(text)));
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
  };
}

Method hypar_method() {
  return {
      .name = "hypar",
      .title = "HyPar",
      .paper = "HyPar, HPCA 2019",
      .description = "Devices cut into halves, at every cut each layer by batch or reduction, least volume exchanged",
      .refuses = &partition_refuses,
      .ratio_plans = &in_unlike_parts,
      .make = [] { return alone("hypar", Options::hypar()); },
  };
}

Method owt_method() {
  return {
      .name = "owt",
      .title = "One Weird Trick",
      .short_name = "OWT",
      .paper = "Krizhevsky, arXiv 1404.5997",
      .description = "Convolutions by batch, fully connected layers by reduction",
      .refuses = &partition_refuses,
      .ratio_plans = &in_unlike_parts,
      .make = [] { return alone("owt", Options::one_weird_trick()); },
  };
}

}  // namespace turnpoint::search
