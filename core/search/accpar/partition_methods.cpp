// SPDX-License-Identifier: Apache-2.0
#include "core/search/accpar/partition_methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <chrono>

#include "core/plan/ratio_evaluator.h"
#include "core/search/accpar/equal_halves.h"
#include "core/search/accpar/unequal_halves.h"
#include "core/search/baselines/restricted.h"

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

/// One ratio plan.
class OneRatioPlan : public PlanSource {
 public:
  explicit OneRatioPlan(RatioPlanPtr plan) : plan_(std::move(plan)) {}
  AnyPlan plan(std::size_t) const override { return plan_; }
  PlanKind kind(std::size_t) const override { return PlanKind::ratio; }
  std::size_t bytes() const override {
    return plan_->operators.size() * (plan_->cuts.size() * sizeof(RatioPlan::Share) + sizeof(RatioPlan::Item));
  }

 private:
  RatioPlanPtr plan_;
};

ResultPtr result_of(const ScenarioPtr& scenario, RatioPlan&& plan, double search_s) {
  auto result = std::make_shared<Result>();
  result->scenario = scenario;
  result->search_s = search_s;
  ResultPoint point;
  point.memory_bytes = plan.most_memory();
  point.time_s = plan.cost.time_s(), point.compute_s = plan.cost.compute_s(), point.network_s = plan.cost.network_s();
  point.fits = fits(*scenario, plan);
  result->points.push_back(point);
  if (point.fits) result->near_best = 0;
  result->notes.push_back(fmt::format("Memory is that of the device that needs most. {}.",
                                      fmt::join(describe_devices(*scenario, plan), "; ")));
  result->plans = std::make_shared<OneRatioPlan>(std::make_shared<const RatioPlan>(std::move(plan)));
  return result;
}

class Partitioned : public Searcher {
 public:
  Partitioned(std::string name, Options options, std::string parameters, bool best_of_all = false)
      : name_(std::move(name)), options_(options), parameters_(std::move(parameters)), best_of_all_(best_of_all) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    auto layers = layers_of(*scenario->model);
    if (!layers) return layers.error();
    options_.bytes_per_element = scenario->settings.precision == Precision::fp32 ? 4 : 2;
    const bool equal = !scenario->cluster->mixed() && not_in_halves(*scenario->cluster).empty();
    const auto result = equal ? in_equal_halves(scenario, *layers, context) : in_shares(scenario, *layers, context);
    if (!result) return result;
    auto named = std::make_shared<Result>(**result);
    named->method = name_, named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  /// Level by level the cheapest cut is not always the cheapest in the end: AccPar's answer is the best of its own over
  /// all levels and those that it is compared with.
  Expected<Assignment> assigned(const LayerGraph& graph, const Bisection& devices, const RunContext& context) const {
    if (!best_of_all_) return accpar::search(graph, devices, options_, context);
    auto best = accpar::best_of_all(graph, devices, options_, context);
    if (!best) return best.error();
    return std::move(best->assignment);
  }

  Expected<ResultPtr> in_equal_halves(const ScenarioPtr& scenario, ModelLayers& layers, const RunContext& context) {
    const Model& model = *scenario->model;
    const bool windows = scenario->settings.split_windows;
    keep_whole_halves(model, windows, layers);
    const auto devices = bisect(tree_of_devices(*scenario));
    if (!devices) return devices.error();
    const auto assignment = assigned(layers.graph, *devices, context);
    if (!assignment) return assignment.error();
    const auto levels = types_by_level(*assignment);
    const Mesh mesh = make_mesh(*scenario->cluster);
    const auto configurations = configurations_of(model, mesh, windows, layers, levels);
    if (!configurations) return configurations.error();
    SearchSpace space;
    space.only = [&](OperatorId id, const Operator&, const Mesh&) {
      return std::vector<Configuration>{(*configurations)[id]};
    };
    space.choice = MemoryChoice{};
    return fastest_with(name_, scenario, space, context);
  }

  Expected<ResultPtr> in_shares(const ScenarioPtr& scenario, ModelLayers& layers, const RunContext& context) {
    const auto begin = std::chrono::steady_clock::now();
    keep_splittable(*scenario->model, scenario->settings.split_windows, layers);
    const auto devices = bisect(tree_of_devices(*scenario));
    if (!devices) return devices.error();
    const auto assignment = assigned(layers.graph, *devices, context);
    if (!assignment) return assignment.error();
    auto plan = evaluate_ratio_plan(*scenario, ratio_plan_of(*scenario, *devices, *assignment, layers));
    if (!plan) return plan.error();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return result_of(scenario, std::move(*plan), elapsed.count());
  }

  std::string name_;
  Options options_;
  std::string parameters_;
  bool best_of_all_;
};

std::string partition_refuses(const Scenario& scenario) {
  return scenario.settings.precision == Precision::fp8 &&
                 (scenario.cluster->mixed() || !not_in_halves(*scenario.cluster).empty())
             ? "shares of unlike or odd halves are not priced in 8 bits"
             : std::string();
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
  return std::unique_ptr<Searcher>(
      std::make_unique<Partitioned>("accpar", options, std::string(text), options.programme == Programme::exact));
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
      .make = [] { return std::make_unique<Partitioned>("hypar", Options::hypar(), ""); },
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
      .make = [] { return std::make_unique<Partitioned>("owt", Options::one_weird_trick(), ""); },
  };
}

}  // namespace turnpoint::search
