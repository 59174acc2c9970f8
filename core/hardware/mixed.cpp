// SPDX-License-Identifier: Apache-2.0
// Clusters whose nodes differ, and the one device type that stands for all of them.
#include <fmt/format.h>
#include <algorithm>
#include <cassert>
#include <numeric>

#include "core/hardware/cluster.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMaximumGroups = 64;

/// What joins nodes of the cluster, at worst.
LinkLevel network_of(const Cluster& cluster) {
  LinkLevel network = cluster.links[kInterNode];
  for (const PodLevel& level : cluster.pods) network = slower_link(network, level.link);
  return network;
}

/// Times of one part's kernels and groups are none of the whole's.
void forget_measurements(Cluster& whole, const std::vector<ClusterPtr>& parts) {
  const bool measured = std::any_of(parts.begin(), parts.end(), [](const ClusterPtr& part) {
    return !(part->collectives.empty() && part->operators.empty() && part->fits.empty());
  });
  whole.collectives.clear();
  forget_operator_times(whole);
  whole.topology = {};
  if (measured) whole.notes.push_back("of joined hardware devices and links count, not what was measured of its parts");
}

std::vector<NodeGroup> groups_of(const Cluster& cluster) {
  if (cluster.mixed()) return cluster.groups;
  return {{cluster.nodes, cluster.device, cluster.devices_per_node, {network_of(cluster), cluster.links[kIntraNode]}}};
}

}  // namespace

std::string mixed_note(const Cluster& cluster) {
  std::string list;
  bool unlike_nodes = false;
  for (const auto& group : cluster.groups) {
    list +=
        fmt::format("{}{} of {}", list.empty() ? "" : ", ", group.nodes * group.devices_per_node, group.device.name);
    unlike_nodes |= group.devices_per_node != cluster.devices_per_node;
  }
  return fmt::format(
      "the devices differ ({}): methods for equal devices cost with the slowest speed, memory and links{}", list,
      unlike_nodes ? fmt::format(", and with nodes of {}", cluster.devices_per_node) : "");
}

std::vector<RealNode> real_nodes(const Cluster& cluster) {
  std::vector<RealNode> nodes;
  int first = 0;
  const auto add = [&](int count, int devices, const DeviceType& device, const std::array<LinkLevel, 2>& links) {
    for (int n = 0; n < count; ++n, first += devices) nodes.push_back({first, devices, &device, &links});
  };
  if (!cluster.mixed()) add(cluster.nodes, cluster.devices_per_node, cluster.device, cluster.links);
  for (const NodeGroup& group : cluster.groups) add(group.nodes, group.devices_per_node, group.device, group.links);
  return nodes;
}

const DeviceType& device_of(const Cluster& cluster, std::uint32_t device) {
  int before = 0;
  for (const NodeGroup& group : cluster.groups) {
    before += group.nodes * group.devices_per_node;
    if (static_cast<int>(device) < before) return group.device;
  }
  return cluster.device;
}

DeviceType weakest_device(const std::vector<NodeGroup>& groups) {
  assert(!groups.empty());
  DeviceType weakest = groups.front().device;
  double price = 0, devices = 0;
  bool priced = true;
  for (const NodeGroup& group : groups) {
    const DeviceType& device = group.device;
    const int count = group.nodes * group.devices_per_node;
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
    weakest.cache_bytes = std::min(weakest.cache_bytes, device.cache_bytes);
    weakest.cache_bandwidth = std::min(weakest.cache_bandwidth, device.cache_bandwidth);
    weakest.memory_efficiency = std::min(weakest.memory_efficiency, device.memory_efficiency);
    weakest.product_launch_s = std::max(weakest.product_launch(), device.product_launch());
    weakest.launch_s = std::max(weakest.launch_s, device.launch_s);
    priced &= device.price_per_hour.has_value();
    price += count * device.price_per_hour.value_or(0);
    devices += count;
  }
  weakest.price_per_hour = priced ? std::optional(price / devices) : std::nullopt;
  return weakest;
}

Expected<ClusterPtr> join_clusters(const std::vector<ClusterPtr>& parts) {
  assert(!parts.empty());
  if (parts.size() > kMaximumGroups)
    return usage_error(
        fmt::format("a mixed cluster has at most {} kinds of nodes, not {}", kMaximumGroups, parts.size()));
  auto whole = std::make_shared<Cluster>(*parts.front());
  whole->groups.clear();
  int devices = 0, per_node = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Cluster& part = *parts[i];
    if (parts.size() > 1 && part.links[kInterNode].bandwidth <= 0)
      return usage_error(fmt::format(
          "hardware '{}' describes no link between nodes, so that nothing can join it to others", part.name));
    for (const NodeGroup& group : groups_of(part)) {
      devices += group.nodes * group.devices_per_node;
      per_node = std::gcd(per_node, group.devices_per_node);
      whole->groups.push_back(group);
    }
    if (i == 0) {
      whole->links[kInterNode] = network_of(part);
      continue;
    }
    whole->name += "+" + part.name;
    whole->title += " + " + part.title;
    whole->links[kInterNode] = slower_link(whole->links[kInterNode], network_of(part));
    whole->links[kIntraNode] = slower_link(whole->links[kIntraNode], part.links[kIntraNode]);
    if (part.library != whole->library) whole->library = Library::ring;
    whole->host_link_bandwidth = std::min(whole->host_link_bandwidth, part.host_link_bandwidth);
    whole->overlap_slowdown = std::max(whole->overlap_slowdown, part.overlap_slowdown);
    whole->notes.insert(whole->notes.end(), part.notes.begin(), part.notes.end());
  }
  if (whole->groups.size() < 2) return parts.front();
  whole->pods.clear();
  forget_measurements(*whole, parts);
  if (devices / per_node > kMaximumNodes || devices > kMaximumDevices)
    return usage_error(fmt::format("hardware '{}' has more than {} nodes of {} devices or {} devices", whole->name,
                                   kMaximumNodes, per_node, kMaximumDevices));
  whole->nodes = devices / per_node;
  whole->devices_per_node = per_node;
  whole->device = weakest_device(whole->groups);
  whole->notes.push_back(mixed_note(*whole));
  return ClusterPtr(whole);
}

}  // namespace turnpoint
