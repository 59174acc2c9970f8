// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/placement_json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/plan_io/escape.h"
#include "core/plan_io/task_graph_json.h"

namespace turnpoint {

namespace {

constexpr const char* kSteps = "steps";
constexpr const char* kParts = "parts";
constexpr const char* kWhole = "whole";

nlohmann::json write_made_with(const TrainingGraphOptions& options) {
  return {{"recurrent", options.cells_in_parts   ? kParts
                        : options.unrolled_steps ? kSteps
                                                 : kWhole},
          {"micro_batches", options.micro_batches},
          {"whole_layers", options.whole_layers},
          {"kept_gradients", options.kept_gradients}};
}

nlohmann::json head_of(const Scenario& scenario, const PlacementPlan& plan) {
  nlohmann::json head = {{"model", valid_utf8(scenario.model->name)},
                         {"hardware", valid_utf8(scenario.hardware)},
                         {"tasks", plan.graph->task_count()},
                         {"makespan_s", plan.makespan_s},
                         {"max_load_s", plan.max_load_s},
                         {"one_device_s", plan.one_device_s},
                         {"busy_s", plan.busy_s},
                         {"peak_bytes", plan.peak_bytes},
                         {"peak_communication_bytes", plan.peak_communication_bytes},
                         {"fits", !plan.shortage.has_value()}};
  if (!plan.operator_of.empty()) head["training_graph"] = write_made_with(plan.made_with);
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

std::optional<TrainingGraphOptions> read_made_with(JsonFields& plan) {
  if (!plan.has("training_graph")) return std::nullopt;
  JsonFields graph = plan.object("training_graph");
  TrainingGraphOptions options;
  const std::string recurrent = graph.text("recurrent", kSteps);
  if (recurrent != kSteps && recurrent != kParts && recurrent != kWhole)
    graph.fail("recurrent", fmt::format("'{}' is none of {}, {}, {}", recurrent, kSteps, kParts, kWhole));
  options.unrolled_steps = recurrent != kWhole;
  options.cells_in_parts = recurrent == kParts;
  options.micro_batches = static_cast<int>(graph.integer("micro_batches", 1, kMaxMicroBatches, 1));
  options.whole_layers = graph.flag("whole_layers", false);
  options.kept_gradients = graph.flag("kept_gradients", false);
  return options;
}

}  // namespace turnpoint
