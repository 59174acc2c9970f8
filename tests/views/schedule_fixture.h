// SPDX-License-Identifier: Apache-2.0
// Schedules for tests of views, all run by the simulator: a pipeline of transformer layers, the layered graphs of the
// benchmarks, and the odd ones (empty, one task, no time at all, no memory recorded).
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "core/simulation/schedule.h"
#include "core/simulation/simulator.h"
#include "simulation/layered_dag.h"

namespace turnpoint::fixture {

inline SchedulePtr simulated(TaskGraphPtr graph, const Placement& placement, std::int64_t limit = kUnlimitedBytes,
                             bool with_memory = true, std::vector<OperatorId> operators = {}) {
  const auto simulation = simulate(*graph, placement, with_memory);
  return simulation ? make_schedule(std::move(graph), placement, *simulation, limit, std::move(operators)) : nullptr;
}

struct PipelineOptions {
  int stages = 4, layers = 12, micro_batches = 4;
  std::int64_t limit = std::int64_t(16) << 30;
  TaskLinks::Contention contention = TaskLinks::Contention::sender;
  std::string prefix = "L";  ///< of layer names
};

/// Layers of four operators, forward and backward per micro-batch, an update per layer; layers are placed in stages.
inline SchedulePtr pipeline(const PipelineOptions& options = {}) {
  constexpr const char* kOperators[] = {"ln1", "attention", "mlp/fc1", "mlp/fc2"};
  constexpr double kSeconds[] = {0.4e-3, 3.1e-3, 4.2e-3, 4.0e-3};
  constexpr std::int64_t kMiB = std::int64_t(1) << 20;
  TaskGraphBuilder builder;
  builder.name = "pipeline";
  std::vector<std::uint32_t> device;
  std::vector<OperatorId> operators;
  const auto stage_of = [&](int layer) { return std::uint32_t(layer * options.stages / options.layers); };
  const auto add = [&](const std::string& name, int layer, TaskKind kind, double seconds, std::int64_t output,
                       std::int64_t persistent, OperatorId op) {
    TaskGraphBuilder::Task task;
    task.name = name, task.kind = kind, task.time_s = seconds, task.output_bytes = output;
    task.persistent_bytes = persistent, task.workspace_bytes = kind == TaskKind::update ? 0 : 96 * kMiB;
    task.scope = builder.scope(fmt::format("{}{}", options.prefix, layer));
    device.push_back(stage_of(layer));
    operators.push_back(op);
    return builder.add_task(task);
  };
  std::vector<std::vector<TaskIndex>> gradients(std::size_t(options.layers) * 4);
  for (int m = 0; m < options.micro_batches; ++m) {
    std::vector<TaskIndex> forward;
    for (int l = 0; l < options.layers; ++l)
      for (int k = 0; k < 4; ++k) {
        const auto name = fmt::format("{}{}/{}:mb{}", options.prefix, l, kOperators[k], m);
        const TaskIndex t = add(name, l, TaskKind::forward, kSeconds[k] * (1 + 0.07 * ((l * 5 + k * 3) % 4)),
                                (48 + 16 * k) * kMiB, m == 0 ? 180 * kMiB : 0, OperatorId(std::uint32_t(l * 4 + k)));
        if (!forward.empty()) builder.add_edge(forward.back(), t);
        forward.push_back(t);
      }
    TaskIndex before = forward.back();
    for (int i = options.layers * 4; i-- > 0;) {
      const int l = i / 4, k = i % 4;
      const auto name = fmt::format("{}{}/{}:grad mb{}", options.prefix, l, kOperators[k], m);
      const TaskIndex t =
          add(name, l, TaskKind::backward, 2 * kSeconds[k], (24 + 8 * k) * kMiB, 0, OperatorId(std::uint32_t(i)));
      builder.add_edge(before, t);
      builder.add_edge(forward[std::size_t(i)], t);
      gradients[std::size_t(i)].push_back(t);
      before = t;
    }
  }
  for (int i = 0; i < options.layers * 4; ++i) {
    const TaskIndex t = add(fmt::format("{}{}/{}:update", options.prefix, i / 4, kOperators[i % 4]), i / 4,
                            TaskKind::update, 0.8e-3, 0, 0, OperatorId(std::uint32_t(i)));
    for (const TaskIndex gradient : gradients[std::size_t(i)]) builder.add_edge(gradient, t, 0);
  }
  builder.links.bandwidth = 25e9;
  builder.links.latency = 8e-6;
  builder.links.contention = options.contention;
  auto graph = builder.finish("fixture");
  if (!graph) return nullptr;
  Placement placement;
  placement.devices = std::uint32_t(options.stages);
  placement.device = device;
  return simulated(*graph, placement, options.limit, true, operators);
}

enum class Placing { lanes, scattered };

/// A layered graph on devices: lane by lane (few transfers) or at random (nearly every edge is one).
inline SchedulePtr layered(std::uint64_t tasks, std::uint32_t devices, Placing placing,
                           TaskLinks::Contention contention = TaskLinks::Contention::sender,
                           std::int64_t limit = kUnlimitedBytes) {
  const auto dag = test::layered_dag(tasks, 1);
  auto graph = test::layered_graph(dag, 1, contention);
  Placement placement;
  placement.devices = devices;
  test::SplitMix64 random(7);
  for (std::uint64_t t = 0; t < tasks; ++t) {
    const std::uint64_t forward = t < dag.forward ? t : t < 2 * dag.forward ? dag.mirror(t) : t;
    placement.device.push_back(placing == Placing::lanes ? std::uint32_t(forward % test::LayeredDag::kLanes * devices /
                                                                         test::LayeredDag::kLanes)
                                                         : std::uint32_t(random.below(devices)));
  }
  return simulated(std::move(graph), placement, limit);
}

/// `count` independent tasks of the given length on one device.
inline SchedulePtr plain(int count, double seconds, bool with_memory = true, const std::string& name = "task ") {
  TaskGraphBuilder builder;
  builder.name = "plain";
  for (int i = 0; i < count; ++i) {
    TaskGraphBuilder::Task task;
    const std::string text = name + std::to_string(i);
    task.name = text, task.time_s = seconds, task.output_bytes = 1 << 20;
    builder.add_task(task);
  }
  auto graph = builder.finish("fixture");
  if (!graph) return nullptr;
  Placement placement;
  placement.device.assign(std::size_t(count), 0);
  return simulated(*graph, placement, kUnlimitedBytes, with_memory);
}

}  // namespace turnpoint::fixture
