// SPDX-License-Identifier: Apache-2.0
// Placements of small models by chance.
#pragma once

#include <QtTest>
#include <map>
#include <random>

#include "core/plan/placement_plan.h"
#include "core/schedule/training_graph.h"

namespace turnpoint::test {

/// Any order in which a device may run its tasks: one line through the whole graph, drawn by chance.
inline std::vector<std::vector<TaskIndex>> order_by_chance(const TaskGraph& graph, const Placement& placement,
                                                           std::mt19937_64& random) {
  std::vector<std::size_t> waits(graph.task_count());
  std::vector<TaskIndex> ready;
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    if ((waits[t] = graph.predecessors(t).size()) == 0) ready.push_back(t);
  std::vector<std::vector<TaskIndex>> order(placement.devices);
  while (!ready.empty()) {
    std::swap(ready[random() % ready.size()], ready.back());
    const TaskIndex task = ready.back();
    ready.pop_back();
    order[placement.device[task]].push_back(task);
    for (const TaskIndex next : graph.successors(task))
      if (--waits[next] == 0) ready.push_back(next);
  }
  return order;
}

/// Every co-location group and every other task on any device. `unrolled`: recurrent operators as their time steps.
inline PlacementPlan placement_by_chance(const Scenario& scenario, std::mt19937_64& random, bool ordered,
                                         bool unrolled = false, bool whole_layers = true) {
  TrainingGraphOptions options;
  options.unrolled_steps = unrolled;
  options.whole_layers = whole_layers;
  auto made = training_graph_of(scenario, options);
  if (!made) qFatal("%s", made.error().message().c_str());
  PlacementPlan plan;
  plan.graph = made->graph;
  plan.operator_of = made->operator_of;
  plan.role = made->role;
  plan.made_with = options;
  plan.placement.devices = std::uint32_t(scenario.cluster->devices());
  std::map<std::uint32_t, std::uint32_t> groups;
  for (TaskIndex t = 0; t < plan.graph->task_count(); ++t) {
    const auto any = std::uint32_t(random() % plan.placement.devices);
    const std::uint32_t group = plan.graph->colocate[t];
    plan.placement.device.push_back(group == kNone ? any : groups.try_emplace(group, any).first->second);
  }
  if (ordered) plan.placement.order = order_by_chance(*plan.graph, plan.placement, random);
  return plan;
}

}  // namespace turnpoint::test
