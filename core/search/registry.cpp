// SPDX-License-Identifier: Apache-2.0
#include "core/search/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/plan/beyond_switches.h"
#include "core/schedule/simulated_points.h"
#include "core/search/accpar/partition_methods.h"
#include "core/search/baselines/fsdp.h"
#include "core/search/baselines/manual.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/mesh_tensorflow.h"
#include "core/search/baselines/tofu.h"
#include "core/search/frontier_tracking/methods.h"
#include "core/search/frontier_tracking/published_searcher.h"
#include "core/search/method/moved_by_hand.h"
#include "core/search/method/notes.h"
#include "core/search/placement_search.h"
#include "core/search/update_sharding/update_method.h"

namespace turnpoint {

namespace {

/// Whether the updates of its plans can be sharded: not of one that does that itself.
bool only_splits(const Method& method, std::string_view parameters = {}) {
  return !method.places && !(method.traits && method.traits(parameters).shards_updates);
}

Expected<const Method*> method_of_splits(const std::string& name, std::string_view parameters) {
  const auto method = find_method(name);
  if (!method) return method.error();
  if (!only_splits(**method, parameters))
    return usage_error(fmt::format("'{}{}{}' does not only split operators, so that its updates cannot be sharded",
                                   name, parameters.empty() ? "" : ":", parameters));
  return method;
}

Expected<std::unique_ptr<Searcher>> searcher_of_splits(const std::string& name, std::string_view parameters) {
  const auto method = method_of_splits(name, parameters);
  if (!method) return method.error();
  return make_searcher(**method, parameters);
}

std::string refusal_of_splits(const std::string& name, std::string_view parameters, const Scenario& scenario) {
  const auto method = method_of_splits(name, parameters);
  return method ? refusal_of(**method, parameters, scenario) : method.error().what;
}

/// The methods that split operators, in their order; those that place tasks follow.
std::vector<Method> sharding_methods() {
  std::vector<Method> all = {
      search::frontier_tracking_method(),
      search::data_parallel_method(),
      search::optcnn_method(),
      search::mesh_tensorflow_method(),
      search::tofu_method(),
      search::fsdp_method(),
      search::published_method(),
      search::published_elimination_method(),
      search::megatron_method(),
      search::manual_method(),
      search::accpar_method(),
      search::hypar_method(),
      search::owt_method(),
  };
  std::vector<std::string> splitting;
  for (const Method& method : all)
    if (only_splits(method)) splitting.push_back(method.name);
  all.push_back(
      search::update_sharding_method({std::move(splitting), &searcher_of_splits, &refusal_of_splits, &traits_of}));
  return all;
}

/// Exact answers of few points come with what they are on the simulated clock; one that does what the scenario's
/// switches deny says so. All carry their method's traits.
class WithClock : public Searcher {
 public:
  static constexpr std::size_t kFewPoints = 16;

  WithClock(std::unique_ptr<Searcher> searcher, MethodTraits traits)
      : searcher_(std::move(searcher)), traits_(traits) {}
  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass pass, const RunContext& context) override {
    auto result = searcher_->run(scenario, pass, context);
    if (!result) return result;
    result = with_traits(*result);
    result = search::with_note(*result, beyond_switches_note(**result));
    if (pass != SearchPass::exact || (*result)->points.size() > kFewPoints || !(*result)->plans) return result;
    if (context.cancelled()) return result;  // of a search that was stopped and has an answer all the same
    auto simulated = with_simulated_points(*result, context);
    // The answer of a search stands whatever becomes of its second clock, which whoever needs it asks for again.
    if (!simulated && simulated.error().code != ErrorCode::cancelled) return result;
    return simulated;
  }
  Expected<void> get_ready(const ScenarioPtr& scenario, const RunContext& context) override {
    return searcher_->get_ready(scenario, context);
  }

 private:
  ResultPtr with_traits(const ResultPtr& result) const {
    if (result->traits == traits_) return result;
    auto carrying = std::make_shared<Result>(*result);
    carrying->traits = traits_;
    return carrying;
  }

  std::unique_ptr<Searcher> searcher_;
  MethodTraits traits_;
};

/// The parameters that the method itself reads, and those moves of its plan's parts that follow.
Expected<search::ByHand> own_and_by_hand(const Method& method, std::string_view parameters) {
  if (!method.ratio_plans) return search::ByHand{{}, std::string(parameters)};
  return search::take_by_hand(method.name, parameters);
}

const Method& the_one(bool (*is)(const Method&)) { return *std::find_if(methods().begin(), methods().end(), is); }

}  // namespace

const std::vector<Method>& methods() {
  static const std::vector<Method> kMethods = [] {
    std::vector<Method> all = sharding_methods();
    for (Method& method : search::placement_search_methods()) all.push_back(std::move(method));
    return all;
  }();
  return kMethods;
}

const Method& default_method(bool of_tasks) {
  return of_tasks ? the_one([](const Method& one) { return one.default_method && one.places; })
                  : the_one([](const Method& one) { return one.default_method && !one.places; });
}

const Method& split_method() {
  return the_one([](const Method& one) { return one.own_split; });
}

Expected<const Method*> find_method(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& method : methods()) {
    if (method.name == name) return &method;
    names.push_back(method.name);
  }
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

MethodTraits traits_of(const std::string& name, std::string_view parameters) {
  const auto method = find_method(name);
  return method && (*method)->traits ? (*method)->traits(parameters) : MethodTraits{};
}

bool cuts_by_types(const std::string& name, std::string_view parameters) {
  const auto method = find_method(name);
  if (!method) return false;
  if ((*method)->ratio_plans) return true;
  const std::string other = std::string((*method)->other_method) + '=';
  for (const std::string_view part : split(parameters, ':'))
    if (other.size() > 1 && part.starts_with(other)) return cuts_by_types(std::string(part.substr(other.size())), {});
  return false;
}

bool ends_by_time(const std::string& name, std::string_view parameters) {
  const auto method = find_method(name);
  if (!method) return false;
  const auto read = read_parameters(name, (*method)->options, parameters);
  return read && std::ranges::any_of((*method)->options, [&](const OptionRecord& option) {
           return option.type == OptionType::real && option.unit == "s" && read->written(option.key) &&
                  read->number(option.key) > 0;
         });
}

std::string with_moves_by_hand(std::string_view parameters, const RatioMoves& moves) {
  return search::with_by_hand(parameters, moves);
}

Expected<RatioPlan> plan_moved_by_hand(const std::string& name, std::string_view parameters, const Scenario& scenario,
                                       const RatioPlan& plan, const RatioMoves& moves, const RunContext& context) {
  const auto method = find_method(name);
  if (!method) return method.error();
  if ((*method)->moved) return (*method)->moved(scenario, parameters, plan, moves, context);
  return with_moves(scenario, plan, moves);
}

std::vector<std::string> words_of_parameters(const Method& method) {
  std::vector<std::string> words = parameter_words(method.options);
  if (method.ratio_plans) words.push_back(search::by_hand_words());
  return words;
}

std::vector<std::string> completions_of_parameters(const Method& method) {
  std::vector<std::string> words = parameter_completions(method.options);
  if (method.ratio_plans) words.push_back(search::by_hand_begin());
  return words;
}

std::string described(const Method& method) {
  if (!method.parameter_words.empty()) return method.description + method.parameter_words;
  const std::vector<std::string> words = words_of_parameters(method);
  if (words.empty()) return method.description;
  return fmt::format("{}; parameters {}", method.description, fmt::join(words, ", "));
}

std::string refusal_of(const Method& method, std::string_view parameters, const Scenario& scenario) {
  if (scenario.tasks && !method.places)
    return fmt::format("splits a model's operators, and a task graph has none; placement methods such as {} place it",
                       default_method(true).name);
  auto asked = own_and_by_hand(method, parameters);
  if (!asked) return asked.error().what;
  if (!asked->moves.empty() && !method.ratio_plans(scenario))
    return "devices that are alike, and a power of two of them, are cut into equal halves: there is no ratio to move";
  if (method.refuses_with) return method.refuses_with(scenario, asked->others);
  return method.refuses ? method.refuses(scenario) : std::string();
}

Expected<std::unique_ptr<Searcher>> make_searcher(const Method& method, std::string_view parameters) {
  auto asked = own_and_by_hand(method, parameters);
  if (!asked) return asked.error();
  if (!method.make_with && !asked->others.empty())
    return usage_error(fmt::format("method {} takes no parameters", method.name));
  auto searcher = method.make_with ? method.make_with(asked->others) : method.make();
  const bool unknown = !searcher && searcher.error().what.find("knows the parameters") != std::string::npos;
  if (unknown && method.ratio_plans && searcher.error().hint.empty()) {
    Error error = searcher.error();
    error.hint = fmt::format("{} moves the parts that it finds", search::by_hand_words());
    return error;
  }
  if (!searcher || method.places) return searcher;  // a placement is simulated as it is
  if (!asked->moves.empty())
    searcher =
        search::moved_by_hand(std::move(*searcher), method.title, std::string(parameters), std::move(asked->moves));
  const MethodTraits traits = method.traits ? method.traits(asked->others) : MethodTraits{};
  return std::unique_ptr<Searcher>(std::make_unique<WithClock>(std::move(*searcher), traits));
}

}  // namespace turnpoint
