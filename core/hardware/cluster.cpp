// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/cluster.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <numeric>

#include "core/base/text.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {
constexpr const char* kPrecisionNames[] = {"fp32", "bf16", "fp8"};
constexpr const char* kOriginNames[] = {"measured", "calibrated", "modelled"};
}  // namespace

const char* to_string(Precision precision) { return kPrecisionNames[static_cast<std::size_t>(precision)]; }

std::optional<Precision> parse_precision(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kPrecisionNames); ++i)
    if (name == kPrecisionNames[i]) return static_cast<Precision>(i);
  return std::nullopt;
}

const char* to_string(Origin origin) { return kOriginNames[static_cast<std::size_t>(origin)]; }

std::optional<Origin> parse_origin(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kOriginNames); ++i)
    if (name == kOriginNames[i]) return static_cast<Origin>(i);
  return std::nullopt;
}

const OperatorFit* fit_like(const std::vector<OperatorFit>& fits, const OperatorFit& fit) {
  const auto found = std::find_if(fits.begin(), fits.end(), [&](const OperatorFit& other) {
    return other.kind == fit.kind && other.phase == fit.phase && other.precision == fit.precision;
  });
  return found == fits.end() ? nullptr : &*found;
}

void forget_operator_times(Cluster& cluster) {
  cluster.operators.clear();
  cluster.fits.clear();
  cluster.warm_fits.clear();
}

std::string shape_suffix(int nodes, int devices_per_node) { return fmt::format("-{}x{}", nodes, devices_per_node); }

std::string cluster_title(int nodes, int devices_per_node, const std::string& device) {
  return fmt::format("{} \u00d7 {} {}", nodes, devices_per_node, device);
}

namespace {

/// Pods of each level in one of the level above, from the largest down, then nodes of the smallest.
std::vector<int> counts_of(const Cluster& cluster) {
  std::vector<int> counts;
  int nodes = cluster.nodes;
  for (auto level = cluster.pods.rbegin(); level != cluster.pods.rend(); ++level) {
    counts.push_back(nodes / level->nodes);
    nodes = level->nodes;
  }
  counts.push_back(nodes);
  return counts;
}

/// What a preset reserves depends on how many devices talk to one another: one alone has no communicator. A reserve
/// that is not the preset's own was measured or written by somebody, and stays.
void reserve_as_the_preset_does(const Cluster& whole, Cluster& part) {
  const auto of_whole = cluster_preset(whole.name), of_part = cluster_preset(part.name);
  if (of_whole && of_part && whole.device.reserve_bytes == (*of_whole)->device.reserve_bytes)
    part.device.reserve_bytes = (*of_part)->device.reserve_bytes;
}

}  // namespace

std::string shape_suffix(const Cluster& cluster) {
  std::string parts;
  for (auto level = cluster.pods.rbegin(); level != cluster.pods.rend(); ++level)
    parts += fmt::format("@{:g}", level->link.bandwidth / cluster.links[kInterNode].bandwidth);
  return fmt::format("-{}x{}{}", fmt::join(counts_of(cluster), "x"), cluster.devices_per_node, parts);
}

std::string cluster_title(const Cluster& cluster) {
  return fmt::format("{} \u00d7 {} {}", fmt::join(counts_of(cluster), " \u00d7 "), cluster.devices_per_node,
                     cluster.device.name);
}

LinkLevel slower_link(const LinkLevel& a, const LinkLevel& b) {
  if (a.bandwidth <= 0) return b;
  if (b.bandwidth <= 0) return a;
  LinkLevel link = a.bandwidth <= b.bandwidth ? a : b;
  link.latency_s = std::max(a.latency_s, b.latency_s);
  link.launch_s = std::max(a.launch_s, b.launch_s);
  link.switch_reduces = a.switch_reduces && b.switch_reduces;
  return link;
}

void set_nodes(Cluster& cluster, int nodes) {
  cluster.nodes = nodes;
  std::vector<PodLevel> levels;
  for (PodLevel level : cluster.pods) {
    level.nodes = std::gcd(level.nodes, nodes);
    if (level.nodes == nodes) continue;
    // Pods of no more nodes than those of the level below: whoever leaves the one leaves the other.
    LinkLevel* below = level.nodes == 1                                        ? &cluster.links[kInterNode]
                       : !levels.empty() && levels.back().nodes == level.nodes ? &levels.back().link
                                                                               : nullptr;
    if (below)
      *below = slower_link(*below, level.link);
    else
      levels.push_back(std::move(level));
  }
  cluster.pods = std::move(levels);
}

std::array<int, kMaxPodLevels> pods_of(const Cluster& cluster, int nodes) {
  std::array<int, kMaxPodLevels> pods{1, 1, 1, 1};
  for (std::size_t l = 0; l < cluster.pods.size(); ++l)
    pods[l] = (nodes + cluster.pods[l].nodes - 1) / cluster.pods[l].nodes;
  return pods;
}

Expected<ClusterPtr> with_devices(const ClusterPtr& cluster, int devices) {
  if (devices < 1) return usage_error(fmt::format("the number of devices must be at least 1, not {}", devices));
  if (devices > kMaximumDevices)
    return usage_error(fmt::format("the number of devices must be at most {}, not {}", kMaximumDevices, devices));
  if (devices == cluster->devices()) return cluster;
  if (cluster->mixed()) {
    Error error =
        usage_error(fmt::format("a count of {} devices would cut '{}', whose nodes differ", devices, cluster->name));
    error.hint = fmt::format("take all {} devices, or name the parts with their own shapes", cluster->devices());
    return error;
  }
  const int per_node = cluster->devices_per_node;
  // A profile of one node need not know a network; guessing one would make every number wrong.
  if (devices > per_node && cluster->links[kInterNode].bandwidth <= 0) {
    Error error = usage_error(fmt::format("{} devices need {} nodes, but hardware '{}' describes no link between nodes",
                                          devices, (devices + per_node - 1) / per_node, cluster->name));
    error.hint = fmt::format("{}; this machine can be measured with {} CPU ranks",
                             per_node == 1 ? "it has one device" : fmt::format("take 1 to {}", per_node), devices);
    return error;
  }
  if (devices > per_node && devices % per_node != 0) {
    const int below = devices / per_node * per_node;
    Error error = usage_error(fmt::format(
        "{} devices are neither at most the {} devices of a node nor a multiple of them", devices, per_node));
    error.hint =
        fmt::format("take {} or {}; 1 to {} and whole nodes beyond can be had", below, below + per_node, per_node);
    return error;
  }
  auto cut = std::make_shared<Cluster>(*cluster);
  set_nodes(*cut, std::max(1, devices / per_node));
  cut->devices_per_node = std::min(devices, per_node);
  const std::string old_suffix = shape_suffix(*cluster);
  const std::string base = cluster->name.ends_with(old_suffix)
                               ? cluster->name.substr(0, cluster->name.size() - old_suffix.size())
                               : cluster->name;
  cut->name = base + shape_suffix(*cut);
  cut->title = cluster_title(*cut);
  reserve_as_the_preset_does(*cluster, *cut);
  return ClusterPtr(cut);
}

}  // namespace turnpoint
