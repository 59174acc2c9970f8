// SPDX-License-Identifier: Apache-2.0
#include "core/plan/ratio_plan.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "core/base/quantities.h"

namespace turnpoint {

std::string_view to_string(PartitionType type) {
  switch (type) {
    case PartitionType::batch: return "I";
    case PartitionType::reduction: return "II";
    case PartitionType::output: return "III";
  }
  return "";
}

std::int64_t RatioPlan::most_memory() const {
  return device_memory.empty() ? 0 : *std::max_element(device_memory.begin(), device_memory.end());
}

const DeviceType& device_of(const Cluster& cluster, std::uint32_t device) {
  int node = static_cast<int>(device) / cluster.devices_per_node;
  for (const NodeGroup& group : cluster.groups) {
    if (node < group.nodes) return group.device;
    node -= group.nodes;
  }
  return cluster.device;
}

namespace {

/// Of one device: its own memory as far as the scenario leaves it to the plan, or the user's limit.
std::int64_t memory_of(const Scenario& scenario, const DeviceType& device) {
  const Settings& settings = scenario.settings;
  if (settings.memory_limit > 0) return scenario.memory_limit();
  const auto all = static_cast<double>(device.memory_bytes) * settings.factors.device_memory;
  return static_cast<std::int64_t>(all) - scenario.reserved_bytes();
}

}  // namespace

bool fits(const Scenario& scenario, const RatioPlan& plan) {
  for (std::uint32_t d = 0; d < plan.device_memory.size(); ++d)
    if (plan.device_memory[d] > memory_of(scenario, device_of(*scenario.cluster, d))) return false;
  return true;
}

std::vector<std::string> describe_devices(const Scenario& scenario, const RatioPlan& plan) {
  struct Kind {
    int devices = 0;
    std::int64_t most = 0, memory = 0;
  };
  std::vector<std::pair<std::string, Kind>> kinds;
  for (std::uint32_t d = 0; d < plan.device_memory.size(); ++d) {
    const DeviceType& type = device_of(*scenario.cluster, d);
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const auto& kind) { return kind.first == type.name; });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), {type.name, {}});
    ++at->second.devices;
    at->second.most = std::max(at->second.most, plan.device_memory[d]);
    at->second.memory = memory_of(scenario, type);
  }
  std::vector<std::string> lines;
  for (const auto& [name, kind] : kinds)
    lines.push_back(fmt::format("{} \u00d7 {}: at most {} of {} on one", kind.devices, name, format_bytes(kind.most),
                                format_bytes(kind.memory)));
  return lines;
}

}  // namespace turnpoint
