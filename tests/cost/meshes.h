// SPDX-License-Identifier: Apache-2.0
// Small meshes and round numbers for tests of layouts and resharding.
#pragma once

#include <vector>

#include "core/cost/layout.h"

namespace turnpoint::test {

/// Axes of the given sizes, between nodes first, then inside the node.
inline Mesh mesh_of(const std::vector<int>& across, const std::vector<int>& inside) {
  static const char* const names[] = {"y", "x", "z", "w", "v", "u", "t", "s", "r", "q", "p", "o"};
  Mesh mesh;
  for (const int size : across) mesh.axes.push_back({names[mesh.count()], size, kInterNode});
  for (const int size : inside) mesh.axes.push_back({names[mesh.count()], size, kIntraNode});
  return mesh;
}

/// 10 GB/s and 5 us on both levels unless told otherwise.
inline Cluster cluster_of(int nodes, int devices_per_node, double across = 10e9, double inside = 10e9,
                          double latency_s = 5e-6) {
  Cluster cluster;
  cluster.name = "test";
  cluster.nodes = nodes;
  cluster.devices_per_node = devices_per_node;
  cluster.links[kInterNode] = {"between", across, latency_s};
  cluster.links[kIntraNode] = {"inside", inside, latency_s};
  return cluster;
}

inline Layout layout_of(std::initializer_list<int> values) {
  Layout layout;
  int axis = 0;
  for (const int value : values) layout.axis[axis++] = static_cast<std::int8_t>(value);
  return layout;
}

inline constexpr int R = Layout::kReplicated, P = Layout::kPartial;

}  // namespace turnpoint::test
