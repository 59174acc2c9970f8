// SPDX-License-Identifier: Apache-2.0
// turnpoint/result@1 and turnpoint/results@1 (resources/manual/formats.md).
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/named_file.h"
#include "core/plan/result.h"
#include "core/plan_io/escape.h"
#include "core/plan_io/placement_json.h"
#include "core/plan_io/plan_json.h"
#include "core/plan_io/ratio_json.h"
#include "core/plan_io/result_json.h"
#include "core/plan_io/result_parts.h"
#include "core/plan_io/told_json.h"
#include "core/scenario/scenario_json.h"

namespace turnpoint {

namespace {

using nlohmann::json;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json write_point(const ResultPoint& point) {
  json object = {{"memory_bytes", point.memory_bytes},
                 {"time_s", point.time_s},
                 {"compute_s", point.compute_s},
                 {"network_s", point.network_s},
                 {"fits", point.fits}};
  if (point.simulated_time_s) object["simulated_time_s"] = *point.simulated_time_s;
  if (point.simulated_memory_bytes) object["simulated_memory_bytes"] = *point.simulated_memory_bytes;
  if (point.peak_communication_bytes) object["peak_communication_bytes"] = *point.peak_communication_bytes;
  return object;
}

json write_any_plan(const Result& result, std::size_t point) {
  const Scenario& scenario = *result.scenario;
  return visit_plan(
      result.plans->plan(point), [&](const Plan& plan) { return write_plan(scenario, plan); },
      [&](const RatioPlan& plan) { return write_ratio_plan(scenario, plan); },
      [&](const PlacementPlan& plan) { return json::parse(write_placement_plan(scenario, plan)); });
}

}  // namespace

const char* to_string(Clock clock) { return clock == Clock::additive ? "additive" : "simulated"; }

ResultParts result_parts(const Result& result, bool with_plans) {
  const Model& model = *result.scenario->model;
  const TaskGraph* tasks = result.scenario->tasks.get();
  json scenario = write_scenario(*result.scenario);
  // Whoever opens the result may do so from another folder.
  scenario["model"] = valid_utf8(absolute_name(model.source));
  if (result.scenario->hardware.find('/') != std::string::npos || result.scenario->hardware.ends_with(".json"))
    scenario["hardware"] = valid_utf8(absolute_name(result.scenario->hardware));
  scenario["method_options"] = valid_utf8(result.method_options);
  json head = {{"format", "turnpoint/result@1"},
               {"model",
                {{"name", valid_utf8(model.name)},
                 {"operators", model.operators.size()},
                 {"parameters", model.parameters},
                 {"source", valid_utf8(model.source)}}},
               {"scenario", std::move(scenario)},
               {"method", result.method},
               {"clock", to_string(result.clock)},
               {"exact", result.exact},
               {"gap", optional_json(result.gap)},
               {"search_s", result.search_s},
               {"turning_point", optional_json(result.turning_point)},
               {"near_best", optional_json(result.near_best)}};
  if (tasks) head["model"].update({{"tasks", tasks->task_count()}, {"edges", tasks->edge_count()}});
  if (std::isfinite(result.slowest_considered_s)) head["slowest_considered_s"] = result.slowest_considered_s;
  if (result.heuristic_eliminations) head["heuristic_eliminations"] = *result.heuristic_eliminations;
  write_told(result, head);
  if (!result.objective.empty()) head["objective"] = result.objective;
  if (result.price_per_iteration) head["price_per_iteration"] = *result.price_per_iteration;
  if (result.samples_per_second) head["samples_per_second"] = *result.samples_per_second;
  if (result.speed_up) head["speed_up"] = *result.speed_up;
  ResultParts parts;
  const auto list = [&](const char* key, std::size_t count, auto at) {
    head[key] = nullptr;
    parts.lists[key] = {count, std::move(at)};
  };
  list("points", result.points.size(), [&](std::size_t i) { return write_point(result.points[i]); });
  if (!result.lower_bound.empty())
    list("lower_bound", result.lower_bound.size(), [&](std::size_t i) {
      return json{{"memory_bytes", result.lower_bound[i].memory}, {"time_s", result.lower_bound[i].time}};
    });
  if (with_plans && result.plans)
    list("plans", result.points.size(), [&](std::size_t i) { return write_any_plan(result, i); });
  parts.head = std::make_shared<json>(std::move(head));
  return parts;
}

json write_result(const Result& result, bool with_plans) {
  ResultParts parts = result_parts(result, with_plans);
  for (const auto& [key, list] : parts.lists) {
    json& array = (*parts.head)[key] = json::array();
    for (std::size_t i = 0; i < list.count; ++i) array.push_back(list.at(i));
  }
  return std::move(*parts.head);
}

json write_results(const std::vector<ResultPtr>& results, bool with_plans) {
  json array = json::array();
  for (const auto& result : results) array.push_back(write_result(*result, with_plans));
  return {{"format", kResultsFormat}, {"results", std::move(array)}};
}

}  // namespace turnpoint
