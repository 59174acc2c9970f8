// SPDX-License-Identifier: Apache-2.0
// A plan as a picture that needs no other program.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/export/format.h"
#include "core/export/layered_layout.h"
#include "core/export/plan_graph.h"
#include "core/export/writers.h"
#include "core/plan_io/escape.h"

namespace turnpoint {

namespace {

constexpr double kColumn = 176, kRow = 72, kBoxWidth = 156, kBoxHeight = 36, kMargin = 24, kLegendRow = 20;

// About as many characters as fit a box; counts characters, not bytes.
std::string shortened(const std::string& text, std::size_t limit) {
  const std::string clean = valid_utf8(text);
  std::size_t characters = 0, keep = clean.size();
  for (std::size_t i = 0; i < clean.size(); ++i) {
    if ((static_cast<unsigned char>(clean[i]) & 0xC0) == 0x80) continue;
    if (characters == limit - 1) keep = i;
    ++characters;
  }
  return characters <= limit ? clean : clean.substr(0, keep) + "\u2026";
}

struct Canvas {
  double top = 0;
  double x(const LayeredLayout::Point& p) const { return kMargin + kBoxWidth / 2 + p.x * kColumn; }
  double y(const LayeredLayout::Point& p) const { return top + kBoxHeight / 2 + p.y * kRow; }
};

std::string draw_edge(const Canvas& canvas, const std::vector<LayeredLayout::Point>& line,
                      const PlanGraph::Edge& edge) {
  const double half = kBoxHeight / 2;
  double x = canvas.x(line.front()), y = canvas.y(line.front()) + half;
  std::string path = fmt::format("M{:.1f} {:.1f}", x, y);
  for (std::size_t i = 1; i < line.size(); ++i) {
    const double next_x = canvas.x(line[i]), next_y = canvas.y(line[i]) - (i + 1 == line.size() ? half : 0);
    const double middle = (y + next_y) / 2;
    path += fmt::format(" C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}", x, middle, next_x, middle, next_x, next_y);
    x = next_x;
    y = next_y;
  }
  const std::string cost = edge.weight > 0 ? ", resharding " + format_seconds(edge.reshard_s) : std::string();
  return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.2f}\"><title>{}{}</title></path>\n",
                     path, edge.weight > 0 ? "#C96C1A" : "#8A929A", 1 + 5 * edge.weight, escape_xml(edge.tensor), cost);
}

std::string draw_node(const Canvas& canvas, const LayeredLayout::Point& at, const PlanGraph::Node& node) {
  const double x = canvas.x(at), y = canvas.y(at);
  std::string svg =
      fmt::format("<g><title>{}\n{}\n{}, {}</title>", escape_xml(node.name), escape_xml(node.configuration),
                  format_seconds(node.cost.time_s()), format_bytes(node.cost.memory_bytes()));
  svg += fmt::format(
      "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"{}\" stroke=\"#565E66\"{}/>",
      x - kBoxWidth / 2, y - kBoxHeight / 2, kBoxWidth, kBoxHeight, kConfigurationColours[node.colour],
      node.is_view ? " stroke-dasharray=\"3 2\"" : "");
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"11\">{}</text>", x, y - 3,
                     escape_xml(shortened(node.name, 24)));
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"9\">{}</text></g>\n", x, y + 11,
                     escape_xml(shortened(node.configuration, 30)));
  return svg;
}

}  // namespace

std::string write_plan_svg(const Scenario& scenario, const Plan& plan) {
  const PlanGraph graph = make_plan_graph(scenario, plan);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  for (const auto& edge : graph.edges) pairs.emplace_back(edge.from, edge.to);
  const LayeredLayout layout = layered_layout(graph.nodes.size(), pairs);

  const double head = kMargin + 22 + kLegendRow * static_cast<double>(graph.legend.size()) + 12;
  const Canvas canvas{head};
  const double width = std::max(2 * kMargin + kBoxWidth + std::max(0.0, layout.width - 1) * kColumn, 520.0);
  const double height = head + std::max(0, layout.layers - 1) * kRow + kBoxHeight + kMargin;
  std::string svg = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  svg += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
      "font-family=\"sans-serif\" fill=\"#14181C\" text-anchor=\"middle\">\n",
      width, height);
  svg += fmt::format("<rect width=\"{:.0f}\" height=\"{:.0f}\" fill=\"#FFFFFF\"/>\n", width, height);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\" text-anchor=\"start\">{} on {}: {}, {}</text>\n",
      kMargin, kMargin + 10, escape_xml(scenario.model->name), escape_xml(scenario.hardware),
      format_bytes(plan.cost.memory_bytes()), format_seconds(plan.cost.time_s()));
  double y = kMargin + 30;
  for (const auto& entry : graph.legend) {
    svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"14\" height=\"14\" fill=\"{}\" stroke=\"#565E66\"/>", kMargin,
                       y - 11, kConfigurationColours[entry.colour]);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\" text-anchor=\"start\">{} \u00d7{}</text>\n",
                       kMargin + 22, y, escape_xml(entry.configuration), entry.operators);
    y += kLegendRow;
  }
  for (std::size_t e = 0; e < graph.edges.size(); ++e) svg += draw_edge(canvas, layout.edges[e], graph.edges[e]);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) svg += draw_node(canvas, layout.nodes[n], graph.nodes[n]);
  return svg + "</svg>\n";
}

ExportFormat svg_format() {
  return {
      .key = "svg",
      .subject = "Plan",
      .name = "SVG",
      .file = "plan.svg",
      .text = "A drawing of the plan",
      .plan = write_plan_svg,
      .ratio = [](const Scenario& scenario, const RatioPlan& plan) { return write_plan_svg(scenario, as_axes(plan)); }};
}

}  // namespace turnpoint
