// SPDX-License-Identifier: Apache-2.0
// turnpoint/result@1 and turnpoint/results@1 (design.md section 6).
#include <nlohmann/json.hpp>

#include "core/plan/escape.h"
#include "core/plan/export.h"
#include "core/plan/placement_export.h"
#include "core/plan/result.h"
#include "core/scenario/scenario_json.h"

namespace turnpoint {

namespace {

using nlohmann::json;

template <class T>
json optional_json(const std::optional<T>& value) {
  return value ? json(*value) : json();
}

json write_points(const std::vector<ResultPoint>& points) {
  json array = json::array();
  for (const ResultPoint& point : points) {
    array.push_back({{"memory_bytes", point.memory_bytes},
                     {"time_s", point.time_s},
                     {"compute_s", point.compute_s},
                     {"network_s", point.network_s},
                     {"fits", point.fits}});
    if (point.simulated_time_s) array.back()["simulated_time_s"] = *point.simulated_time_s;
    if (point.simulated_memory_bytes) array.back()["simulated_memory_bytes"] = *point.simulated_memory_bytes;
  }
  return array;
}

}  // namespace

const char* to_string(Clock clock) { return clock == Clock::additive ? "additive" : "simulated"; }

json write_result(const Result& result, bool with_plans) {
  const Model& model = *result.scenario->model;
  const TaskGraph* tasks = result.scenario->tasks.get();
  json scenario = write_scenario(*result.scenario);
  scenario["model"] = valid_utf8(model.source);
  scenario["method_options"] = valid_utf8(result.method_options);
  json document = {{"format", "turnpoint/result@1"},
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
                   {"near_best", optional_json(result.near_best)},
                   {"points", write_points(result.points)}};
  if (tasks) document["model"].update({{"tasks", tasks->task_count()}, {"edges", tasks->edge_count()}});
  if (result.heuristic_eliminations) document["heuristic_eliminations"] = *result.heuristic_eliminations;
  for (const auto& note : result.notes) document["notes"].push_back(valid_utf8(note));
  if (!result.objective.empty()) document["objective"] = result.objective;
  if (result.price_per_iteration) document["price_per_iteration"] = *result.price_per_iteration;
  if (!result.lower_bound.empty()) {
    json& bound = document["lower_bound"] = json::array();
    for (const auto& point : result.lower_bound)
      bound.push_back({{"memory_bytes", point.memory}, {"time_s", point.time}});
  }
  if (with_plans && result.plans) {
    json& plans = document["plans"] = json::array();
    for (std::size_t i = 0; i < result.points.size(); ++i) {
      const PlacementPlanPtr placement = result.plans->placement(i);
      plans.push_back(placement ? json::parse(write_placement_plan(*result.scenario, *placement))
                                : write_plan(*result.scenario, result.plans->plan(i)));
    }
  }
  return document;
}

json write_results(const std::vector<ResultPtr>& results, bool with_plans) {
  json array = json::array();
  for (const auto& result : results) array.push_back(write_result(*result, with_plans));
  return {{"format", "turnpoint/results@1"}, {"results", std::move(array)}};
}

}  // namespace turnpoint
