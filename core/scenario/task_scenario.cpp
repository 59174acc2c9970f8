// SPDX-License-Identifier: Apache-2.0
#include "core/scenario/task_scenario.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <cmath>

namespace turnpoint {

namespace {

bool is_file_hardware(const std::string& hardware) { return hardware.empty() || hardware == kFileHardware; }

std::int64_t scaled(std::int64_t bytes, double factor) {
  return bytes == kUnlimitedBytes ? bytes : std::int64_t(std::floor(double(bytes) * factor));
}

/// The slowest link of the first `devices` devices.
LinkLevel slowest_link(const TaskLinks& links, int devices) {
  LinkLevel level{"links of the file", links.bandwidth, links.latency, Origin::modelled};
  if (links.size < 2 || devices < 2) return level;
  const auto count = std::min(links.size, std::uint32_t(devices));
  level.bandwidth = links.bandwidth_of(0, 1), level.latency_s = links.latency_of(0, 1);
  for (std::uint32_t from = 0; from < count; ++from)
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      level.bandwidth = std::min(level.bandwidth, links.bandwidth_of(from, to));
      level.latency_s = std::max(level.latency_s, links.latency_of(from, to));
    }
  return level;
}

void scale_links(TaskGraph& graph, const WhatIf& factors) {
  graph.links.bandwidth *= factors.intra_bandwidth;
  graph.links.latency *= factors.latency;
  for (double& bandwidth : graph.links.bandwidths) bandwidth *= factors.intra_bandwidth;
  for (double& latency : graph.links.latencies) latency *= factors.latency;
}

}  // namespace

Expected<ClusterPtr> cluster_of_file(const TaskGraph& tasks, int devices) {
  const std::uint32_t limit = tasks.device_limit();
  int count = devices;
  if (count <= 0) count = int(tasks.intended_devices);
  if (count <= 0) count = limit == kNone ? kDefaultPlacementDevices : int(limit);
  if (std::uint32_t(count) > limit) {
    Error error =
        usage_error(fmt::format("{} devices asked for, the task graph's file describes {}", count, limit), tasks.name);
    error.hint = fmt::format("take 1 to {}", limit);
    return error;
  }
  auto cluster = std::make_shared<Cluster>();
  cluster->name = kFileHardware;
  cluster->title = fmt::format("{} device{} of its file", count, count == 1 ? "" : "s");
  cluster->devices_per_node = count;
  cluster->device.name = "device";
  cluster->device.memory_bytes = kUnlimitedBytes;
  for (int d = 0; d < count; ++d)
    cluster->device.memory_bytes = std::min(cluster->device.memory_bytes, tasks.memory_of(std::uint32_t(d)));
  cluster->links = {slowest_link(tasks.links, count), slowest_link(tasks.links, count)};
  return ClusterPtr(std::move(cluster));
}

Expected<ScenarioPtr> make_task_scenario(TaskGraphPtr tasks, ModelPtr model, const ClusterPtr& cluster,
                                         const std::string& hardware, const Settings& settings) {
  assert(tasks && model);
  auto scenario = std::make_shared<Scenario>();
  scenario->settings = settings;
  scenario->model = std::move(model);
  scenario->hardware = is_file_hardware(hardware) ? kFileHardware : hardware;
  auto used = is_file_hardware(hardware) ? cluster_of_file(*tasks, settings.devices)
              : settings.devices > 0     ? with_devices(cluster, settings.devices)
                                         : Expected<ClusterPtr>(cluster);
  if (!used) return used.error();
  scenario->cluster = *used;
  scenario->tasks = std::move(tasks);
  return ScenarioPtr(std::move(scenario));
}

TaskLinks links_of(const Cluster& cluster, const WhatIf& factors) {
  const std::vector<RealNode> nodes = real_nodes(cluster);
  TaskLinks links;
  if (nodes.size() == 1) {
    const LinkLevel& inner = (*nodes.front().links)[kIntraNode];
    if (inner.bandwidth > 0) {
      links.bandwidth = inner.bandwidth * factors.intra_bandwidth;
      links.latency = inner.latency_s * factors.latency;
    }
    return links;
  }
  std::vector<const RealNode*> node_of;  // by device
  for (const RealNode& node : nodes) node_of.insert(node_of.end(), std::size_t(node.devices), &node);
  links.size = std::uint32_t(node_of.size());
  for (const RealNode* from : node_of)
    for (const RealNode* to : node_of) {
      const LinkLevel &sender = (*from->links)[kInterNode], &receiver = (*to->links)[kInterNode];
      const LinkLevel& inner = (*from->links)[kIntraNode];
      const bool near = from == to && from->devices > 1;
      double bandwidth = std::min(sender.bandwidth, receiver.bandwidth);
      double latency = std::max(sender.latency_s, receiver.latency_s);
      for (const PodLevel& level : cluster.pods)
        if ((from - nodes.data()) / level.nodes != (to - nodes.data()) / level.nodes)
          bandwidth = std::min(bandwidth, level.link.bandwidth), latency = level.link.latency_s;
      links.bandwidths.push_back(near ? inner.bandwidth * factors.intra_bandwidth
                                      : bandwidth * factors.inter_bandwidth);
      links.latencies.push_back((near ? inner.latency_s : latency) * factors.latency);
    }
  return links;
}

namespace {

/// What of a device decides how long a task takes.
struct Rates {
  double flop, bytes;
};

Rates rates_of(const Scenario& scenario, const DeviceType& device) {
  const Precision precision = scenario.settings.precision;
  return {device.peak(precision) * device.efficiency(precision), device.memory_bandwidth * device.memory_efficiency};
}

Rates slowest_rates(const Scenario& scenario) {
  Rates slowest = rates_of(scenario, scenario.cluster->groups.front().device);
  for (const NodeGroup& group : scenario.cluster->groups) {
    const Rates rates = rates_of(scenario, group.device);
    slowest = {std::min(slowest.flop, rates.flop), std::min(slowest.bytes, rates.bytes)};
  }
  return slowest;
}

}  // namespace

double task_speed(const Scenario& scenario, const DeviceType& device) {
  if (!scenario.cluster->mixed()) return 1;
  const Rates own = rates_of(scenario, device), slowest = slowest_rates(scenario);
  const double arithmetic = slowest.flop > 0 ? own.flop / slowest.flop : 1;
  return slowest.bytes > 0 ? std::min(arithmetic, own.bytes / slowest.bytes) : arithmetic;
}

std::string describe_task_speeds(const Scenario& scenario) {
  if (is_file_hardware(scenario.hardware) || !scenario.cluster->mixed()) return {};
  std::vector<std::string> slow, fast;
  const auto add = [](std::vector<std::string>& to, std::string text) {
    if (std::find(to.begin(), to.end(), text) == to.end()) to.push_back(std::move(text));
  };
  for (const NodeGroup& group : scenario.cluster->groups) {
    const double speed = task_speed(scenario, group.device);
    if (speed < 1.005)
      add(slow, group.device.name);
    else
      add(fast, fmt::format("{:.2f} times as fast on {}", speed, group.device.name));
  }
  if (fast.empty() && slow.size() == 1) return {};
  if (fast.empty()) return "The file's times are taken for those of every device, since none is faster in all respects.";
  return fmt::format(
      "The file's times are taken for those on {}; tasks run {}, which is what a device's arithmetic or its memory "
      "bandwidth gains, whichever gains less.",
      fmt::join(slow, " and "), fmt::join(fast, " and "));
}

TaskGraphPtr placed_tasks(const Scenario& scenario) {
  assert(scenario.tasks);
  const WhatIf& factors = scenario.settings.factors;
  const bool own = is_file_hardware(scenario.hardware);
  if (own && factors == WhatIf()) return scenario.tasks;
  auto graph = std::make_shared<TaskGraph>(*scenario.tasks);
  for (double& seconds : graph->out_seconds) seconds /= factors.intra_bandwidth;
  if (own) {
    scale_links(*graph, factors);
    for (TaskDevice& device : graph->devices)
      device = {scaled(device.memory_bytes, factors.device_memory), device.speed * factors.device_speed};
    graph->alike = {scaled(graph->alike.memory_bytes, factors.device_memory),
                    graph->alike.speed * factors.device_speed};
    return graph;
  }
  const auto contention = graph->links.contention;
  graph->links = links_of(*scenario.cluster, factors);
  graph->links.contention = contention;
  graph->devices.clear();
  for (const RealNode& node : real_nodes(*scenario.cluster)) {
    const double speed = task_speed(scenario, *node.device) * factors.device_speed;
    for (int d = 0; d < node.devices; ++d)
      graph->devices.push_back({scenario.memory_limit_of(std::uint32_t(node.first_device + d)), speed});
  }
  return graph;
}

}  // namespace turnpoint
