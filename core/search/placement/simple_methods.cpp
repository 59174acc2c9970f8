// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/simple_methods.h"

#include <algorithm>

#include "core/search/placement/list_schedule.h"
#include "core/search/placement/sequence.h"

namespace turnpoint::placement {
namespace {

SimulatedPlacement without_order(std::vector<std::uint32_t> device, std::uint32_t devices) {
  SimulatedPlacement result;
  result.placement.devices = devices;
  result.placement.device = std::move(device);
  return result;
}

Expected<SimulatedPlacement> run_round_robin(const TaskGraph& graph, const PlacementRequest& request, const RunContext&) {
  std::vector<std::uint32_t> device(graph.task_count()), group(graph.groups.size(), kNone);
  std::uint32_t next = 0;
  for (const TaskIndex t : graph.topological) {
    const std::uint32_t g = graph.colocate[t];
    if (g != kNone && group[g] != kNone) {
      device[t] = group[g];
      continue;
    }
    device[t] = next++ % request.devices;
    if (g != kNone) group[g] = device[t];
  }
  return without_order(std::move(device), request.devices);
}

Expected<SimulatedPlacement> run_heft(const TaskGraph& graph, const PlacementRequest& request, const RunContext& context) {
  context.report("upward ranks", 0.1);
  const ScheduleCosts costs(graph, request.devices);
  const auto order = order_by_priority(costs, bottom_levels(costs, 1.0));
  ListOptions options;
  options.insertion = true;
  context.report("list scheduling", 0.4);
  Schedule schedule = list_schedule(costs, order, options, context);
  if (context.cancelled()) return cancelled_error();
  SimulatedPlacement result;
  result.placement = std::move(schedule.placement);
  return result;
}

}  // namespace

std::uint32_t best_single_device(const TaskGraph& graph, const PlacementRequest& request) {
  std::int64_t persistent = 0;
  for (const std::int64_t bytes : graph.persistent_bytes) persistent += bytes;
  std::uint32_t best = 0;
  const auto key = [&](std::uint32_t d) {
    const std::int64_t limit = request.limit_of(graph, d);
    return std::make_tuple(limit >= persistent, graph.speed_of(d), limit);
  };
  for (std::uint32_t d = 1; d < request.devices; ++d)
    if (key(best) < key(d)) best = d;
  return best;
}

std::int64_t smallest_limit(const TaskGraph& graph, const PlacementRequest& request) {
  std::int64_t limit = request.memory_limit;
  for (std::uint32_t d = 0; d < request.devices; ++d) limit = std::min(limit, graph.memory_of(d));
  return limit;
}

Expected<SimulatedPlacement> run_single_device(const TaskGraph& graph, const PlacementRequest& request,
                                            const RunContext&) {
  const std::uint32_t device = best_single_device(graph, request);
  return without_order(std::vector<std::uint32_t>(graph.task_count(), device), request.devices);
}

Expected<SimulatedPlacement> run_layered_expert(const TaskGraph& graph, const PlacementRequest& request,
                                             const RunContext&) {
  const Sequence line = line_up(graph, SequenceOrder::topological);
  return without_order(cut(line, balanced_stages(line, request.devices)), request.devices);
}

Expected<SimulatedPlacement> run_pipedream(const TaskGraph& graph, const PlacementRequest& request,
                                        const RunContext& context) {
  context.report("stages", 0.1);
  const Sequence line = line_up(graph, SequenceOrder::topological);
  auto stages = optimal_stages(graph, line, request.devices, smallest_limit(graph, request), context);
  if (context.cancelled()) return cancelled_error();
  // Where no cut fits the limit the best cut without it says what is missing.
  if (stages.empty()) stages = optimal_stages(graph, line, request.devices, kUnlimitedBytes, context);
  if (context.cancelled()) return cancelled_error();
  return without_order(cut(line, stages), request.devices);
}

PlacementMethod heft_method() {
  return {
      .name = "heft",
      .title = "HEFT",
      .paper = "Topcuoglu, Hariri, Wu: heterogeneous earliest finish time (2002)",
      .description = "Tasks by upward rank, each where it ends earliest, gaps filled",
      .on_by_default = true,
      .run = &run_heft,
  };
}

PlacementMethod pipedream_method() {
  return {
      .name = "pipedream",
      .title = "Contiguous stages",
      .paper = "PipeDream: contiguous pipeline stages by dynamic programming",
      .description = "Contiguous stages of the smallest maximum load",
      .run = &run_pipedream,
  };
}

PlacementMethod layered_expert_method() {
  return {
      .name = "layered-expert",
      .title = "Layers by hand",
      .paper = "what a person does: contiguous layers of equal time",
      .description = "Contiguous layers balanced by time",
      .on_by_default = true,
      .run = &run_layered_expert,
  };
}

PlacementMethod round_robin_method() {
  return {
      .name = "round-robin",
      .title = "Round robin",
      .paper = "baseline",
      .description = "Tasks in turn over the devices",
      .run = &run_round_robin,
  };
}

PlacementMethod single_device_method() {
  return {
      .name = "single-device",
      .title = "One device",
      .paper = "baseline",
      .description = "Everything on one device",
      .on_by_default = true,
      .run = &run_single_device,
  };
}

}  // namespace turnpoint::placement
