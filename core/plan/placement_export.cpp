// SPDX-License-Identifier: Apache-2.0
#include "core/plan/placement_export.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "core/plan/escape.h"
#include "core/plan/task_graph_json.h"
#include "core/simulation/simulator.h"
#include "core/simulation/trace.h"

namespace turnpoint {

namespace {

using Out = std::back_insert_iterator<std::string>;
constexpr const char* kWhere = "placement of the plan";

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

Expected<std::string> write_placement_csv(const PlacementPlan& plan) {
  const TaskGraph& graph = *plan.graph;
  const auto simulation = simulate(graph, plan.placement, false, kWhere);
  if (!simulation) return simulation.error();
  std::string csv = "task,name,kind,scope,device,start_s,end_s,output_bytes,persistent_bytes,workspace_bytes\r\n";
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    fmt::format_to(Out(csv), "{},{},{},{},{},{},{},{},{},{}\r\n", t, csv_field(graph.names[t]),
                   to_string(graph.kind[t]), csv_field(graph.scopes[graph.scope[t]]), plan.placement.device[t],
                   simulation->start_s[t], simulation->end_s[t], graph.output_bytes[t], graph.persistent_bytes[t],
                   graph.workspace_bytes[t]);
  return csv;
}

Expected<std::string> write_placement_trace(const PlacementPlan& plan) {
  const auto simulation = simulate(*plan.graph, plan.placement, true, kWhere);
  if (!simulation) return simulation.error();
  return write_trace(*plan.graph, plan.placement, *simulation);
}

Expected<std::string> write_placement_dot(const PlacementPlan& plan) {
  const TaskGraph& graph = *plan.graph;
  if (graph.task_count() > kMostDotTasks)
    return usage_error(
        fmt::format("a graph of {} tasks cannot be drawn; up to {} can. A trace shows it as a "
                    "timeline, CSV as a table",
                    graph.task_count(), kMostDotTasks));
  std::string dot =
      fmt::format("digraph \"{}\" {{\n  rankdir=TB;\n  node [shape=box, style=filled];\n", escape_dot(graph.name));
  const double hues = plan.placement.devices;
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    fmt::format_to(Out(dot), "  t{} [label=\"{}\", fillcolor=\"{:.3f} 0.35 0.95\", tooltip=\"device {}\"];\n", t,
                   escape_dot(graph.names[t]), plan.placement.device[t] / hues, plan.placement.device[t]);
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (const TaskIndex to : graph.successors(t)) {
      const bool sent = plan.placement.device[t] != plan.placement.device[to];
      fmt::format_to(Out(dot), "  t{} -> t{}{};\n", t, to, sent ? " [style=bold, color=\"#c0392b\"]" : "");
    }
  dot += "}\n";
  return dot;
}

}  // namespace turnpoint
