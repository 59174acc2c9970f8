// SPDX-License-Identifier: Apache-2.0
// A plan for Graphviz: boxes coloured by configuration, edges as wide as their resharding is dear.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/plan/escape.h"
#include "core/plan/export.h"
#include "core/plan/plan_graph.h"

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

}  // namespace turnpoint
