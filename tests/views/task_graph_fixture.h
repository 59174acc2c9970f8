// SPDX-License-Identifier: Apache-2.0
// Task graphs and schedules made by hand for tests of views.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/simulation/schedule.h"
#include "core/simulation/simulator.h"

namespace turnpoint::fixture {

/// A chain of layers of four operators with their backward tasks in scopes "layerN"; every layer's backward reads its
/// forward, an update per layer.
inline TaskGraphPtr layered_tasks(int layers, const std::string& name = "layers") {
  TaskGraphBuilder builder;
  builder.name = name;
  builder.links.bandwidth = 1e9;
  std::vector<TaskIndex> forward, backward;
  const auto add = [&](const std::string& task_name, TaskKind kind, int layer, double seconds) {
    TaskGraphBuilder::Task task;
    task.name = task_name;
    task.kind = kind;
    task.time_s = seconds;
    task.output_bytes = 1 << 20;
    task.persistent_bytes = kind == TaskKind::update ? 4 << 20 : 0;
    task.scope = builder.scope(fmt::format("layer{}", layer));
    return builder.add_task(task);
  };
  const char* const parts[] = {"norm", "in", "gelu", "out"};
  for (int l = 0; l < layers; ++l)
    for (const char* part : parts) {
      forward.push_back(add(fmt::format("layer{}/{}", l, part), TaskKind::forward, l, 1e-3));
      if (forward.size() > 1) builder.add_edge(forward[forward.size() - 2], forward.back());
    }
  for (std::size_t i = forward.size(); i-- > 0;) {
    const int l = int(i) / 4;
    backward.push_back(add(fmt::format("layer{}/{}:gradient", l, parts[i % 4]), TaskKind::backward, l, 2e-3));
    builder.add_edge(forward[i], backward.back());
    if (backward.size() > 1) builder.add_edge(backward[backward.size() - 2], backward.back());
    if (i % 4 == 1)
      builder.add_edge(backward.back(), add(fmt::format("layer{}/in:update", l), TaskKind::update, l, 1e-4));
  }
  auto graph = builder.finish(name);
  if (!graph) qFatal("%s", graph.error().message().c_str());
  return *graph;
}

/// Equal parts of the forward levels on each device, what is folded to a task beside it.
inline SchedulePtr in_stages(const TaskGraphPtr& graph, std::uint32_t devices,
                             std::vector<std::uint32_t> cluster = {}) {
  Placement placement;
  placement.devices = devices;
  placement.cluster = std::move(cluster);
  placement.device.resize(graph->task_count());
  std::size_t scopes = graph->scopes.size();
  for (TaskIndex t = 0; t < graph->task_count(); ++t)
    placement.device[t] = std::uint32_t(std::max<std::size_t>(graph->scope[t], 1) - 1) * devices /
                          std::uint32_t(std::max<std::size_t>(2, scopes) - 1);
  const auto simulation = simulate(*graph, placement, true);
  if (!simulation) qFatal("%s", simulation.error().message().c_str());
  return make_schedule(graph, placement, *simulation);
}

}  // namespace turnpoint::fixture
