// SPDX-License-Identifier: Apache-2.0
#include "core/search/method.h"

#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/beyond_switches.h"
#include "core/plan/simulated_points.h"
#include "core/search/baselines/fsdp.h"
#include "core/search/baselines/manual.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/mesh_tensorflow.h"
#include "core/search/baselines/notes.h"
#include "core/search/baselines/options.h"
#include "core/search/baselines/tofu.h"
#include "core/search/frontier_tracking/published_searcher.h"
#include "core/search/frontier_tracking/searcher.h"
#include "core/search/placement/placement_search.h"

namespace turnpoint {

namespace {

std::string accepts_all(const Scenario&) { return {}; }

/// Exact answers of few points come with what they are on the simulated clock; one that does what the scenario's
/// switches deny says so.
class WithClock : public Searcher {
 public:
  static constexpr std::size_t kFewPoints = 16;

  explicit WithClock(std::unique_ptr<Searcher> searcher) : searcher_(std::move(searcher)) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    auto result = searcher_->run(scenario, pass, context);
    if (result) result = search::with_note(*result, beyond_switches_note(**result));
    if (!result || pass != SearchPass::exact || (*result)->points.size() > kFewPoints || !(*result)->plans)
      return result;
    auto simulated = with_simulated_points(*result, context);
    // The answer of a search stands whatever becomes of its second clock, which whoever needs it asks for again.
    if (!simulated && simulated.error().code != ErrorCode::cancelled) return result;
    return simulated;
  }

 private:
  std::unique_ptr<Searcher> searcher_;
};

std::vector<Method> sharding_methods() {
  return {
      {"ft",
       "FT frontier tracking",
       "TensorOpt, arXiv 2004.10856",
       "Every Pareto-optimal plan over all configurations, by exact variable elimination",
       true,
       {},
       &accepts_all,
       &search::make_frontier_tracking},
      {"data-parallel",
       "Data-parallel",
       "common practice",
       "Every operator splits the batch over all devices; parameters are replicated",
       false,
       {},
       &accepts_all,
       &search::make_data_parallel},
      {"optcnn",
       "OptCNN",
       "OptCNN, arXiv 1802.04924; as the TensorOpt study simulates it",
       "The fastest plan over all configurations, memory ignored; updates replicated, nothing computed again",
       false,
       {},
       &accepts_all,
       &search::make_optcnn},
      {"mesh-tensorflow",
       "Mesh-TensorFlow",
       "Mesh-TensorFlow, arXiv 1811.02084; as the TensorOpt study simulates it",
       "One mesh for all operators, every logical dimension split alike wherever it occurs",
       true,
       {},
       &accepts_all,
       &search::make_mesh_tensorflow},
      {"tofu",
       "ToFu",
       "ToFu, arXiv 1807.08887; as the TensorOpt study simulates it",
       "Every tensor split over all devices, nothing replicated, least network time",
       false,
       {},
       &accepts_all,
       &search::make_tofu},
      {"fsdp",
       "Fully sharded",
       "ZeRO, arXiv 1910.02054; PyTorch FSDP, arXiv 2304.11277",
       "Data-parallel with weights, gradients and optimizer state sharded; parameters zero=1|2|3, "
       "group=node|all, recompute=selective",
       false,
       search::fsdp_options(),
       &accepts_all,
       nullptr,
       &search::make_fsdp},
      {"ft-published", "FT as published", "TensorOpt, arXiv 2004.10856",
       "The paper's Algorithms 1 to 3 as printed, for comparison; parameters time-limit=SECONDS, heuristic", true,
       search::published_options(), &accepts_all, nullptr, &search::make_published},
      {"ft-published-elimination", "FT-Elimination as published", "TensorOpt, arXiv 2004.10856",
       "The paper's baseline: elimination to two operators, then brute force; same parameters as ft-published", true,
       search::published_options(), &accepts_all, nullptr, &search::make_published_elimination},
      {"megatron",
       "Megatron",
       "Megatron-LM, arXiv 1909.08053",
       "Tensor groups inside a node times data parallelism, for every size of the groups; parameters "
       "sequence-parallel, recompute=selective",
       true,
       search::megatron_options(),
       &search::megatron_refuses,
       nullptr,
       &search::make_megatron},
      {"manual",
       "Manual",
       "today's practice: Megatron-LM, DeepSpeed; 1F1B schedule, arXiv 2104.04473",
       "A split of your own: dp=4:tp=2:pp=2:micro-batches=16:zero=1:recompute[=selective]:sequence-parallel",
       false,
       search::manual_options(),
       &accepts_all,
       nullptr,
       &search::make_manual,
       &search::manual_refuses},
  };
}

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> kMethods = [] {
    std::vector<Method> all = sharding_methods();
    for (Method& method : search::placement_search_methods()) all.push_back(std::move(method));
    return all;
  }();
  return kMethods;
}

bool is_unbuilt_method(std::string_view name) {
  static constexpr std::string_view kUnbuilt[] = {
      "accpar", "hypar", "owt", "trinity", "hierarchical", "update-sharding", "random-search", "simulated-annealing"};
  return std::find(std::begin(kUnbuilt), std::end(kUnbuilt), name) != std::end(kUnbuilt);
}

Expected<const Method*> find_method(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& method : methods()) {
    if (method.name == name) return &method;
    names.push_back(method.name);
  }
  if (is_unbuilt_method(name)) return usage_error("method '" + name + "' is not built yet");
  Error error = usage_error("no method '" + name + "'");
  if (const auto close = closest_match(name, names); !close.empty())
    error.hint = "did you mean " + close + "?";
  else
    error.hint = fmt::format("there are {}", fmt::join(names, ", "));
  return error;
}

Expected<MethodChoice> choose_method(std::string_view text) {
  const auto colon = text.find(':');
  const auto method = find_method(std::string(text.substr(0, colon)));
  if (!method) return method.error();
  return MethodChoice{*method, colon == std::string_view::npos ? std::string() : std::string(text.substr(colon + 1))};
}

std::string refusal_of(const Method& method, std::string_view parameters, const Scenario& scenario) {
  if (scenario.tasks && !method.places)
    return "splits a model's operators, and a task graph has none; placement methods such as pardnn place it";
  if (method.refuses_with) return method.refuses_with(scenario, parameters);
  return method.refuses ? method.refuses(scenario) : std::string();
}

Expected<std::unique_ptr<Searcher>> make_searcher(const Method& method, std::string_view parameters) {
  if (!method.make_with && !parameters.empty())
    return usage_error(fmt::format("method {} takes no parameters", method.name));
  auto searcher = method.make_with ? method.make_with(parameters) : method.make();
  if (!searcher || method.places) return searcher;  // a placement is simulated as it is
  return std::unique_ptr<Searcher>(std::make_unique<WithClock>(std::move(*searcher)));
}

}  // namespace turnpoint
