// SPDX-License-Identifier: Apache-2.0
// Clusters whose nodes differ, and the one device type that stands for all of them.
#include <fmt/format.h>
#include <algorithm>
#include <cassert>

#include "core/hardware/cluster.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMaximumGroups = 64;

/// The slower of two levels; a level that either lacks (one node, one device a node) is the other's.
LinkLevel slower(const LinkLevel& a, const LinkLevel& b) {
  if (a.bandwidth <= 0) return b;
  if (b.bandwidth <= 0) return a;
  LinkLevel link = a.bandwidth <= b.bandwidth ? a : b;
  link.latency_s = std::max(a.latency_s, b.latency_s);
  link.launch_s = std::max(a.launch_s, b.launch_s);
  link.switch_reduces = a.switch_reduces && b.switch_reduces;
  return link;
}

}  // namespace

std::string mixed_note(const Cluster& cluster) {
  std::string list;
  for (const auto& group : cluster.groups)
    list +=
        fmt::format("{}{} of {}", list.empty() ? "" : ", ", group.nodes * cluster.devices_per_node, group.device.name);
  return fmt::format("the devices differ ({}): methods for equal devices cost with the slowest speed, memory and links",
                     list);
}

DeviceType weakest_device(const std::vector<NodeGroup>& groups) {
  assert(!groups.empty());
  DeviceType weakest = groups.front().device;
  double price = 0, nodes = 0;
  bool priced = true;
  for (const auto& [count, device] : groups) {
    if (&device != &groups.front().device && weakest.name.find(device.name) == std::string::npos)
      weakest.name += " + " + device.name;
    weakest.memory_bytes = std::min(weakest.memory_bytes, device.memory_bytes);
    weakest.peak_fp32 = std::min(weakest.peak_fp32, device.peak_fp32);
    weakest.peak_bf16 = std::min(weakest.peak_bf16, device.peak_bf16);
    weakest.peak_fp8 = std::min(weakest.peak_fp8, device.peak_fp8);
    weakest.reserve_bytes = std::max(weakest.reserve_bytes, device.reserve_bytes);
    weakest.memory_bandwidth = std::min(weakest.memory_bandwidth, device.memory_bandwidth);
    // A rate of 0 is that of any other product.
    const auto least = [&](double& rate, double other) {
      rate = rate > 0 && other > 0 ? std::min(rate, other) : std::max(rate, other);
    };
    least(weakest.flop_efficiency_odd, device.flop_efficiency_odd);
    least(weakest.flop_efficiency_even, device.flop_efficiency_even);
    weakest.flop_efficiency_16bit = std::min(weakest.efficiency(Precision::bf16), device.efficiency(Precision::bf16));
    weakest.flop_efficiency = std::min(weakest.flop_efficiency, device.flop_efficiency);
    weakest.memory_efficiency = std::min(weakest.memory_efficiency, device.memory_efficiency);
    weakest.product_launch_s = std::max(weakest.product_launch(), device.product_launch());
    weakest.launch_s = std::max(weakest.launch_s, device.launch_s);
    priced &= device.price_per_hour.has_value();
    price += count * device.price_per_hour.value_or(0);
    nodes += count;
  }
  weakest.price_per_hour = priced ? std::optional(price / nodes) : std::nullopt;
  return weakest;
}

Expected<ClusterPtr> join_clusters(const std::vector<ClusterPtr>& parts) {
  assert(!parts.empty());
  if (parts.size() > kMaximumGroups)
    return usage_error(
        fmt::format("a mixed cluster has at most {} kinds of nodes, not {}", kMaximumGroups, parts.size()));
  auto whole = std::make_shared<Cluster>(*parts.front());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Cluster& part = *parts[i];
    if (part.devices_per_node != whole->devices_per_node)
      return usage_error(fmt::format("hardware '{}' and '{}': the nodes of a mixed cluster need equally many devices",
                                     parts.front()->name, part.name));
    whole->groups.push_back({part.nodes, part.device});
    if (i == 0) continue;
    whole->nodes += part.nodes;
    whole->name += "+" + part.name;
    whole->title += " + " + part.title;
    for (const int level : {kInterNode, kIntraNode})
      whole->links[level] = slower(whole->links[level], part.links[level]);
    if (part.library != whole->library) whole->library = Library::ring;
    whole->host_link_bandwidth = std::min(whole->host_link_bandwidth, part.host_link_bandwidth);
  }
  if (whole->nodes > kMaximumNodes || whole->devices() > kMaximumDevices)
    return usage_error(
        fmt::format("hardware '{}' has more than {} nodes or {} devices", whole->name, kMaximumNodes, kMaximumDevices));
  if (whole->groups.size() < 2) {
    whole->groups.clear();
    return ClusterPtr(whole);
  }
  whole->device = weakest_device(whole->groups);
  whole->notes.push_back(mixed_note(*whole));
  return ClusterPtr(whole);
}

}  // namespace turnpoint
