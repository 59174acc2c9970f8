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
std::string shape_suffix(const Cluster& cluster);  ///< "-2x8", "-4x32x8@0.5"
struct LinkLevel;
/// The slower of two levels; a level that either lacks (one node, one device a node) is the other's.
LinkLevel slower_link(const LinkLevel& a, const LinkLevel& b);
std::string mixed_note(const Cluster& cluster);  ///< which devices differ, and that costs are conservative
std::string cluster_title(int nodes, int devices_per_node, const std::string& device);  ///< "2 x 8 V100-16GB"
std::string cluster_title(const Cluster& cluster);                                      ///< likewise, with its pods

}  // namespace turnpoint
