// SPDX-License-Identifier: Apache-2.0
// A layered drawing of a directed graph: layers by longest path, crossings reduced by sweeps of barycentres (Sugiyama,
// Tagawa, Toda 1981), long edges routed through their own places in between. Cycles are tolerated: an edge that does
// not lead to a higher index is drawn, but places nobody.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace turnpoint {

struct LayeredLayout {
  struct Point {
    double x = 0, y = 0;
  };
  std::vector<Point> nodes;               ///< centres, in units of one column and one layer
  std::vector<std::vector<Point>> edges;  ///< from source to target, through the layers in between
  double width = 0;                       ///< columns
  int layers = 0;
};

/// Nodes are in topological order. O(sweeps x (nodes + edge lengths)).
LayeredLayout layered_layout(std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges);

}  // namespace turnpoint
