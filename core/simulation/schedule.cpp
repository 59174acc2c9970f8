// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace turnpoint {
namespace {

/// Appends one lane's items, which are already by rising start.
void close_lane(Schedule& schedule, std::uint32_t device, LaneKind kind, std::size_t begin) {
  Schedule::Lane lane{device, kind, std::uint32_t(begin), std::uint32_t(schedule.item_count()), 0};
  for (std::size_t i = begin; i < schedule.item_count(); ++i) lane.busy_s += schedule.end_s[i] - schedule.start_s[i];
  schedule.lanes.push_back(lane);
}

void add_item(Schedule& schedule, double start, double end, TaskIndex task, std::uint32_t peer, std::int64_t bytes) {
  schedule.start_s.push_back(start);
  schedule.end_s.push_back(end);
  schedule.task.push_back(task);
  schedule.peer.push_back(peer);
  schedule.bytes.push_back(bytes);
}

}  // namespace

const char* to_string(LaneKind kind) {
  switch (kind) {
    case LaneKind::compute: return "compute";
    case LaneKind::send: return "send";
    case LaneKind::communication: return "communication";
    case LaneKind::network: return "network";
  }
  return "";
}

SchedulePtr make_schedule(TaskGraphPtr graph, const Placement& placement, const Simulation& simulation,
                          std::int64_t memory_limit, std::vector<OperatorId> operator_of) {
  auto schedule = std::make_shared<Schedule>();
  schedule->makespan_s = simulation.makespan_s;
  schedule->memory = simulation.memory;
  schedule->device_of = placement.device;
  schedule->cluster_of = placement.cluster;
  schedule->operator_of = std::move(operator_of);
  schedule->item_of.assign(graph->task_count(), kNone);
  std::vector<std::uint32_t> item_of_transfer(simulation.transfers.size(), kNone);
  std::vector<std::uint32_t> sent;

  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    const SimulatedDevice& device = simulation.devices[d];
    schedule->devices.push_back({fmt::format("device {}", d), device.persistent_bytes, device.peak_bytes,
                                 device.peak_at_s, std::min(memory_limit, graph->memory_of(d)), 1});
    std::size_t begin = schedule->item_count();
    for (const TaskIndex t : simulation.run_on(d)) {
      schedule->item_of[t] = std::uint32_t(schedule->item_count());
      add_item(*schedule, simulation.start_s[t], simulation.end_s[t], t, kNone, 0);
    }
    close_lane(*schedule, d, LaneKind::compute, begin);

    const auto order = simulation.sent_by(d);
    sent.assign(order.begin(), order.end());
    std::stable_sort(sent.begin(), sent.end(), [&](std::uint32_t a, std::uint32_t b) {
      return simulation.transfers[a].start_s < simulation.transfers[b].start_s;
    });
    begin = schedule->item_count();
    for (const std::uint32_t k : sent) {
      const SimulatedTransfer& transfer = simulation.transfers[k];
      item_of_transfer[k] = std::uint32_t(schedule->item_count());
      add_item(*schedule, transfer.start_s, transfer.end_s, transfer.source, transfer.to, transfer.bytes);
    }
    close_lane(*schedule, d, LaneKind::send, begin);
  }

  for (const CriticalStep& step : critical_path(*graph, placement, simulation))
    schedule->critical.push_back(step.is_transfer ? item_of_transfer[step.index] : schedule->item_of[step.index]);
  schedule->graph = std::move(graph);
  return schedule;
}

}  // namespace turnpoint
