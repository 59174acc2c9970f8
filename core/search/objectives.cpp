// SPDX-License-Identifier: Apache-2.0
#include "core/search/objectives.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <iterator>

#include "core/plan/one_plan.h"
#include "core/scenario/task_scenario.h"
#include "core/search/registry.h"
#include "core/search/unanswered.h"

namespace turnpoint {

namespace {

constexpr const char* kObjectives[] = {"frontier", "mini-time", "mini-parallelism", "profile", "largest-batch"};

// How much faster than `time_s` any plan within `limit` bytes may be, by the certified lower bound.
std::optional<double> gap_within(const Result& result, std::int64_t limit, double time_s) {
  if (!result.gap || result.lower_bound.empty()) return result.gap;
  const auto above = std::find_if(result.lower_bound.begin(), result.lower_bound.end(),
                                  [&](const frontier::CostPoint& bound) { return bound.memory > limit; });
  if (above == result.lower_bound.begin() || !(time_s > 0)) return 0.0;
  return std::max(0.0, (time_s - std::prev(above)->time) / time_s);
}

// Whether a plan better than those found could fit after all.
bool surely_does_not_fit(const Result& result, std::int64_t limit) {
  if (result.exact) return true;
  return result.gap && !result.lower_bound.empty() && result.lower_bound.front().memory > limit;
}

RunContext part_of(const RunContext& whole, int devices, std::size_t index, std::size_t count) {
  RunContext part = whole;
  if (!whole.progress) return part;
  part.progress = [sink = whole.progress, devices, index, count](const Progress& inner) {
    const double done = inner.fraction < 0 ? 0 : std::min(inner.fraction, 1.0);
    sink({fmt::format("{} device{}: {}", devices, devices == 1 ? "" : "s", inner.phase),
          (static_cast<double>(index) + done) / static_cast<double>(count)});
  };
  return part;
}

}  // namespace

const char* to_string(Objective objective) { return kObjectives[static_cast<std::size_t>(objective)]; }

Expected<Objective> parse_objective(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kObjectives); ++i)
    if (name == kObjectives[i]) return static_cast<Objective>(i);
  return usage_error(fmt::format(
      "--objective knows frontier, mini-time, mini-parallelism, profile and largest-batch, not '{}'", name));
}

Contender contender(const Method& method, const std::string& parameters) {
  return {parameters.empty() ? method.name : method.name + ':' + parameters,
          [&method, parameters](const Scenario& scenario) {
            if (const auto made = make_searcher(method, parameters); !made) return made.error().what;
            return refusal_of(method, parameters, scenario);
          },
          [&method, parameters] { return std::move(*make_searcher(method, parameters)); }, method.holds_everything_once,
          method.frontier};
}

std::optional<double> price_of(const Scenario& scenario, double time_s) {
  const auto price = scenario.price_per_hour();
  if (!price) return std::nullopt;
  return *price * scenario.cluster->devices() * time_s / 3600;
}

std::optional<double> price_per_sample(const Scenario& scenario, double time_s) {
  const auto price = price_of(scenario, time_s);
  if (!price || scenario.model->batch < 1) return std::nullopt;
  return *price / static_cast<double>(scenario.model->batch);
}

ResultPtr fastest_within_limit(const ResultPtr& result) {
  auto one = std::make_shared<Result>(*result);
  one->objective = to_string(Objective::mini_time);
  one->points.clear();
  one->lower_bound.clear();
  one->turning_point.reset();
  one->near_best.reset();
  one->plans.reset();
  if (result->points.empty()) return one;
  // By rising memory: the first point needs least.
  const auto fastest = result->fastest_that_fits();
  const std::size_t chosen = fastest.value_or(0);
  const ResultPoint& point = result->points[chosen];
  one->points.push_back(point);
  one->gap = fastest ? gap_within(*result, result->scenario->memory_limit(), point.time_s) : gap_at(*result, chosen);
  if (result->plans) one->plans = std::make_shared<OnePlan>(result->plans, chosen);
  one->price_per_iteration = price_of(*result->scenario, point.time_s);
  return one;
}

std::vector<int> every_count(const Cluster& cluster) {
  if (cluster.mixed()) return {cluster.devices()};
  std::vector<int> counts;
  for (int n = 1; n <= cluster.devices_per_node; ++n) counts.push_back(n);
  for (int nodes = 2; nodes <= cluster.nodes; ++nodes) counts.push_back(nodes * cluster.devices_per_node);
  return counts;
}

std::vector<int> doubling_counts(const Cluster& cluster) {
  if (cluster.mixed()) return {cluster.devices()};
  std::vector<int> counts;
  for (int n = 1; n < cluster.devices_per_node; n *= 2) counts.push_back(n);
  for (int nodes = 1; nodes < cluster.nodes; nodes *= 2) counts.push_back(nodes * cluster.devices_per_node);
  counts.push_back(cluster.devices());
  return counts;
}

Expected<ScenarioPtr> on_devices(const ScenarioPtr& scenario, int devices) {
  if (devices == scenario->cluster->devices()) return scenario;
  Settings settings = scenario->settings;
  settings.devices = devices;
  if (scenario->tasks)
    return make_task_scenario(scenario->tasks, scenario->model, scenario->cluster, scenario->hardware, settings);
  return make_scenario(scenario->model, scenario->cluster, scenario->hardware, settings);
}

Expected<ResultPtr> mini_time(const Contender& method, const ScenarioPtr& scenario, const RunContext& context) {
  const auto result = method.make()->run(scenario, SearchPass::exact, context);
  if (!result) return result.error();
  return fastest_within_limit(*result);
}

Expected<ResultPtr> mini_parallelism(const Contender& method, const ScenarioPtr& scenario, const RunContext& context,
                                     std::vector<int>* tried) {
  const auto counts = every_count(*scenario->cluster);
  ResultPtr least;
  bool certain = true;
  double search_s = 0, needed_in_all = 0;
  std::string refusal;
  std::optional<Error> given_up;
  std::vector<int> gave_up_on;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (context.cancelled()) return cancelled_error();
    const int devices = counts[i];
    const auto here = on_devices(scenario, devices);
    if (!here) return here.error();
    if (auto reason = method.refuses(**here); !reason.empty()) {
      refusal = std::move(reason);
      continue;
    }
    // The last count is searched whatever is known of it: where nothing fits, the answer comes from somewhere.
    if (devices * static_cast<double>((*here)->memory_limit()) < needed_in_all && i + 1 < counts.size()) continue;
    if (tried) tried->push_back(devices);
    const auto found = method.make()->run(*here, SearchPass::exact, part_of(context, devices, i, counts.size()));
    if (!found && found.error().code == ErrorCode::usage) {
      refusal = found.error().what;
      continue;
    }
    // A search that gave up on this many devices may come to an end on others; what it would have found is not known.
    if (!found && found.error().code == ErrorCode::infeasible) {
      if (!given_up) given_up = found.error();
      gave_up_on.push_back(devices);
      certain = false;
      continue;
    }
    if (!found) return found.error();
    search_s += (*found)->search_s;
    auto one = std::make_shared<Result>(*fastest_within_limit(*found));
    one->objective = to_string(Objective::mini_parallelism);
    if (one->points.empty()) continue;
    const bool fits = one->points.front().fits;
    if (fits || !least || one->points.front().memory_bytes < least->points.front().memory_bytes) {
      one->exact = one->exact && certain;
      least = one;
    }
    if (fits) break;
    certain = certain && surely_does_not_fit(**found, (*here)->memory_limit());
    if (devices == 1 && method.holds_everything_once)
      needed_in_all = static_cast<double>((*found)->points.front().memory_bytes);
  }
  if (!least && given_up) return *given_up;
  if (!least) return usage_error(fmt::format("method {}: {}", method.name, refusal.empty() ? "no plan" : refusal));
  auto answer = std::make_shared<Result>(*least);
  if (given_up)
    answer->notes.push_back(
        fmt::format("no answer on {} devices, where a plan may fit: {}", fmt::join(gave_up_on, ", "), given_up->what));
  answer->search_s = search_s;
  return ResultPtr(std::move(answer));
}

Expected<std::vector<ResultPtr>> at_every_count(Objective objective, const Contender& method,
                                                const ScenarioPtr& scenario, const std::vector<int>& counts,
                                                const RunContext& context, const CountSearch& search,
                                                const std::function<void(const ResultPtr&)>& found) {
  std::vector<ResultPtr> results;
  std::string refusal;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (context.cancelled()) return cancelled_error();
    const auto here = on_devices(scenario, counts[i]);
    if (!here) return here.error();
    const auto start = std::chrono::steady_clock::now();
    const auto one = search(*here, part_of(context, counts[i], i, counts.size()));
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    if (!one && one.error().code == ErrorCode::usage) {
      refusal = one.error().what;
      continue;
    }
    if (!one && one.error().code != ErrorCode::infeasible) return one.error();
    const auto answer = one ? *one : unanswered(method.name, *here, "no answer: " + one.error().what, spent.count());
    auto marked = std::make_shared<Result>(*answer);
    marked->objective = to_string(objective);
    results.push_back(marked);
    if (found) found(results.back());
  }
  if (results.empty()) return usage_error(fmt::format("method {}: {}", method.name, refusal));
  return results;
}

Expected<std::vector<ResultPtr>> profile(const Contender& method, const ScenarioPtr& scenario,
                                         const std::vector<int>& counts, const RunContext& context,
                                         const std::function<void(const ResultPtr&)>& found) {
  const auto fastest = [&](const ScenarioPtr& here, const RunContext& part) -> Expected<ResultPtr> {
    if (const auto reason = method.refuses(*here); !reason.empty()) return usage_error(reason);
    return mini_time(method, here, part);
  };
  return at_every_count(Objective::profile, method, scenario, counts, context, fastest, found);
}

}  // namespace turnpoint
