// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/placement_json.h"

#include <nlohmann/json.hpp>

#include "core/plan_io/escape.h"
#include "core/plan_io/task_graph_json.h"

namespace turnpoint {

namespace {

nlohmann::json head_of(const Scenario& scenario, const PlacementPlan& plan) {
  nlohmann::json head = {{"model", valid_utf8(scenario.model->name)},
                         {"hardware", valid_utf8(scenario.hardware)},
                         {"tasks", plan.graph->task_count()},
                         {"makespan_s", plan.makespan_s},
                         {"max_load_s", plan.max_load_s},
                         {"one_device_s", plan.one_device_s},
                         {"busy_s", plan.busy_s},
                         {"peak_bytes", plan.peak_bytes},
                         {"fits", !plan.shortage.has_value()}};
  if (plan.limited()) {
    head["moved_tasks"] = plan.moved_tasks;
    for (const std::int64_t limit : plan.limit_bytes)
      head["limit_bytes"].push_back(limit == kUnlimitedBytes ? nlohmann::json() : nlohmann::json(limit));
  }
  if (plan.shortage)
    head["shortage"] = {
        {"device", plan.shortage->device}, {"time_s", plan.shortage->time_s}, {"bytes", plan.shortage->bytes}};
  for (const PlacementStage& stage : plan.stages)
    head["stages"].push_back({{"name", stage.name}, {"makespan_s", stage.makespan_s}});
  return head;
}

}  // namespace

std::string write_placement_plan(const Scenario& scenario, const PlacementPlan& plan) {
  PlacementFigures figures;
  figures.method = plan.method;
  std::string text = write_placement(plan.placement, figures);
  // The object of the placement format, under the plan's name and with the plan's own keys in front.
  const std::string format = "\"format\": \"turnpoint/placement@1\",\n";
  const std::string head = head_of(scenario, plan).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  text.replace(
      text.find(format), format.size(),
      "\"format\": \"turnpoint/plan@1\",\n\"kind\": \"placement\",\n" + head.substr(2, head.size() - 4) + ",\n");
  return text;
}

}  // namespace turnpoint
