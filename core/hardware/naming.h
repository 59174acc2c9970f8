// SPDX-License-Identifier: Apache-2.0
// What presets, profiles and the cutting of clusters share: bounds, and how a shape is spelt.
#pragma once

#include <string>

namespace turnpoint {

inline constexpr int kMaximumNodes = 8192;
inline constexpr int kMaximumDevicesPerNode = 1024;
inline constexpr int kMaximumDevices = 65536;

std::string shape_suffix(int nodes, int devices_per_node);  ///< "-2x8"
struct Cluster;
std::string mixed_note(const Cluster& cluster);  ///< which devices differ, and that costs are conservative
std::string cluster_title(int nodes, int devices_per_node, const std::string& device);

}  // namespace turnpoint
