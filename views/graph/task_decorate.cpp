// SPDX-License-Identifier: Apache-2.0
// Colours, line widths and texts of a task scene for one placement.
#include <algorithm>
#include <cmath>

#include "views/common/counted.h"
#include "views/common/format.h"
#include "views/graph/task_hover.h"
#include "views/graph/task_scene.h"

namespace turnpoint::views {

namespace {

constexpr float kThinLine = 1.1f, kWidestPlain = 2.4f, kWidestCut = 4.2f;
/// Steps of heat start at these fractions of the largest box on show.
constexpr double kHeatFractions[4] = {0.02, 0.08, 0.25, 0.6};

double value_of(const TaskFigures& figures, const TaskBox& box, TaskColor color) {
  const TaskGraph& graph = figures.graph();
  if (!box.is_group) return color == TaskColor::time ? graph.time_s[box.index] : double(task_bytes(graph, box.index));
  const auto& group = figures.hierarchy->groups[box.index];
  return color == TaskColor::time ? group.time_s() : double(group.output_bytes + group.persistent_bytes);
}

/// By position: colours of scopes or clusters.
const std::vector<std::uint8_t>& slots_of(const TaskFigures& figures, TaskColor color) {
  return color == TaskColor::cluster ? figures.cluster_slot : figures.scope_slot;
}

/// Adds the shares of a group's time by colour and returns where they begin.
std::uint32_t add_shares(TaskScene& scene, const TaskFigures& figures, std::uint32_t group, TaskColor color) {
  const TaskHierarchy& h = *figures.hierarchy;
  const auto& g = h.groups[group];
  std::vector<double> sums(kDeviceColors, 0);
  if (color == TaskColor::device) {
    sums = time_by_device(h, group, figures.schedule->device_of, kDeviceColors);
  } else {
    const auto& slot = slots_of(figures, color);
    const bool timed = g.time_s() > 0;
    for (std::uint32_t p = g.task_begin; p < g.task_end; ++p)
      sums[slot[p]] += timed ? figures.graph().time_s[h.order[p]] : 1;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  const auto begin = std::uint32_t(scene.shares.size());
  for (const double sum : sums) scene.shares.push_back(total > 0 ? float(sum / total) : 0.0f);
  return begin;
}

void color_box(TaskScene& scene, TaskBox& box, const TaskFigures& figures, TaskColor color, double largest) {
  const TaskHierarchy& h = *figures.hierarchy;
  box.shares = kNone, box.color = std::uint8_t(kOtherDevice);
  if (color == TaskColor::time || color == TaskColor::bytes) {
    const double fraction = largest > 0 ? value_of(figures, box, color) / largest : 0;
    box.color = 0;
    for (const double bound : kHeatFractions) box.color = std::uint8_t(box.color + (fraction >= bound ? 1 : 0));
    return;
  }
  const bool by_device = color == TaskColor::device;
  if (by_device && !figures.schedule) return;
  if (color == TaskColor::cluster && figures.cluster_slot.empty()) return;
  if (!box.is_group) {
    box.color = by_device ? std::uint8_t(device_slot(figures.device_of(box.index)))
                          : slots_of(figures, color)[h.position[box.index]];
    return;
  }
  box.shares = add_shares(scene, figures, box.index, color);
  const auto begin = scene.shares.begin() + box.shares;
  box.color = std::uint8_t(std::max_element(begin, begin + kDeviceColors) - begin);
}

void write_texts(TaskBox& box, const TaskFigures& figures) {
  const TaskHierarchy& h = *figures.hierarchy;
  if (!box.is_group) {
    box.value = time_text(figures.graph().time_s[box.index]);
    box.detail = memory_text(task_bytes(figures.graph(), box.index));
    return;
  }
  const auto& group = h.groups[box.index];
  box.value = time_text(group.time_s());
  box.detail = counted(group.tasks(), task_text("1 task"), task_text("%1 tasks"));
  const std::int64_t bytes = group.output_bytes + group.persistent_bytes;
  if (bytes > 0) box.detail += QStringLiteral(" \u00b7 ") + memory_text(bytes);
}

void weigh_lines(TaskScene& scene, const TaskFigures& figures) {
  const auto& edges = figures.hierarchy->edges;
  const bool placed = !figures.cut.empty();
  scene.largest_line = 0;
  const auto weight = [&](std::uint32_t e) { return placed ? figures.cut[e] : figures.weight(edges[e]); };
  for (const std::uint32_t e : scene.line_edge) scene.largest_line = std::max(scene.largest_line, weight(e));
  for (std::size_t l = 0; l < scene.lines(); ++l) {
    const std::uint32_t e = scene.line_edge[l];
    const double part = scene.largest_line > 0 ? std::sqrt(weight(e) / scene.largest_line) : 0;
    const bool cut = placed && figures.cut[e] > 0;
    scene.line_heat[l] = cut ? std::uint8_t(1 + std::min(3, int(part * 4))) : std::uint8_t(0);
    scene.line_width[l] = kThinLine + ((cut      ? kWidestCut
                                        : placed ? kThinLine
                                                 : kWidestPlain) -
                                       kThinLine) *
                                          float(part);
    scene.line_critical[l] = !figures.critical_edge.empty() && figures.critical_edge[e];
  }
}

}  // namespace

void decorate(TaskScene& scene, const TaskFigures& figures, TaskColor color) {
  scene.shares.clear();
  double largest = 0;
  if (color == TaskColor::time || color == TaskColor::bytes)
    for (const TaskBox& box : scene.boxes)
      if (!box.open) largest = std::max(largest, value_of(figures, box, color));
  for (int step = 0; step < 4; ++step) scene.heat_bounds[step] = kHeatFractions[step] * largest;
  for (TaskBox& box : scene.boxes) {
    color_box(scene, box, figures, color, largest);
    write_texts(box, figures);
    if (box.is_group) {
      const auto& group = figures.hierarchy->groups[box.index];
      box.critical = figures.critical_tasks(group.task_begin, group.task_end) > 0;
      box.critical_share = 0;
      if (box.critical && group.time_s() > 0)
        box.critical_share =
            float((figures.critical_s[group.task_end] - figures.critical_s[group.task_begin]) / group.time_s());
    } else {
      const std::uint32_t at = figures.hierarchy->position[box.index];
      box.critical = figures.critical_tasks(at, at + 1) > 0;
    }
  }
  weigh_lines(scene, figures);
}

}  // namespace turnpoint::views
