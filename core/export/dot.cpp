// SPDX-License-Identifier: Apache-2.0
// A plan for Graphviz: boxes coloured by configuration, edges as wide as their resharding is dear; of a placement a
// colour per device.
#include <fmt/format.h>

#include <iterator>

#include "core/base/text.h"
#include "core/export/format.h"
#include "core/export/plan_graph.h"
#include "core/export/writers.h"
#include "core/plan_io/escape.h"

namespace turnpoint {

std::string write_plan_dot(const Scenario& scenario, const Plan& plan) {
  const PlanGraph graph = make_plan_graph(scenario, plan);
  std::string dot = fmt::format("digraph \"{}\" {{\n", escape_dot(scenario.model->name));
  dot += "  node [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\", fontsize=10, fontcolor=\"#14181C\"];\n";
  dot += "  edge [color=\"#8A929A\", fontname=\"sans-serif\", fontsize=9];\n";
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const auto& node = graph.nodes[i];
    dot += fmt::format("  n{} [label=\"{}\\n{}\", fillcolor=\"{}\", tooltip=\"{}, {}\"];\n", i, escape_dot(node.name),
                       escape_dot(node.configuration), kConfigurationColours[node.colour],
                       format_seconds(node.cost.time_s()), format_bytes(node.cost.memory_bytes()));
  }
  for (const auto& edge : graph.edges) {
    dot += fmt::format("  n{} -> n{} [tooltip=\"{}\"", edge.from, edge.to, escape_dot(edge.tensor));
    if (edge.weight > 0)
      dot += fmt::format(", penwidth={:.2f}, color=\"#C96C1A\", label=\"{}\"", 1 + 5 * edge.weight,
                         format_seconds(edge.reshard_s));
    dot += "];\n";
  }
  return dot + "}\n";
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
    fmt::format_to(std::back_inserter(dot),
                   "  t{} [label=\"{}\", fillcolor=\"{:.3f} 0.35 0.95\", tooltip=\"device {}\"];\n", t,
                   escape_dot(graph.names[t]), plan.placement.device[t] / hues, plan.placement.device[t]);
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (const TaskIndex to : graph.successors(t)) {
      const bool sent = plan.placement.device[t] != plan.placement.device[to];
      fmt::format_to(std::back_inserter(dot), "  t{} -> t{}{};\n", t, to,
                     sent ? " [style=bold, color=\"#c0392b\"]" : "");
    }
  dot += "}\n";
  return dot;
}

ExportFormat dot_format() {
  return {
      .key = "dot",
      .subject = "Plan",
      .name = "Graphviz DOT",
      .file = "plan.dot",
      .text = "The plan as a coloured graph",
      .plan = write_plan_dot,
      .ratio = [](const Scenario& scenario, const RatioPlan& plan) { return write_plan_dot(scenario, as_axes(plan)); },
      .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_dot(plan); }};
}

}  // namespace turnpoint
