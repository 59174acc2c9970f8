// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/cluster.h"

#include <fmt/format.h>
#include <algorithm>

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

std::string shape_suffix(int nodes, int devices_per_node) { return fmt::format("-{}x{}", nodes, devices_per_node); }

std::string cluster_title(int nodes, int devices_per_node, const std::string& device) {
  return fmt::format("{} \u00d7 {} {}", nodes, devices_per_node, device);
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
  cut->nodes = std::max(1, devices / per_node);
  cut->devices_per_node = std::min(devices, per_node);
  const std::string old_suffix = shape_suffix(cluster->nodes, per_node);
  const std::string base = cluster->name.ends_with(old_suffix)
                               ? cluster->name.substr(0, cluster->name.size() - old_suffix.size())
                               : cluster->name;
  cut->name = base + shape_suffix(cut->nodes, cut->devices_per_node);
  cut->title = cluster_title(cut->nodes, cut->devices_per_node, cluster->device.name);
  return ClusterPtr(cut);
}

}  // namespace turnpoint
