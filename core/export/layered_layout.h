// SPDX-License-Identifier: Apache-2.0
// A layered drawing of a directed graph: layers by longest path, crossings reduced by sweeps of barycentres (Sugiyama,
// Tagawa, Toda 1981), long edges routed through their own places in between. Cycles are tolerated: an edge that does
// not lead to a higher index is drawn, but places nobody.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace turnpoint {

/// How far apart things in one layer are kept: half of what either takes, and a gap.
struct LayerRoom {
  std::vector<double> nodes = {};  ///< what each node takes of its layer; empty: nothing
  double line = 0;                 ///< what a long edge takes that passes through
  double gap = 1;
  std::size_t most_places = 200'000;  ///< beyond that many, nodes included, long edges run straight
};

struct LayeredLayout {
  struct Point {
    double x = 0, y = 0;
  };
  std::vector<Point> nodes;               ///< centres: along the layer from the least one, and the layer's number
  std::vector<std::vector<Point>> edges;  ///< from source to target, through the layers in between
  double width = 0;                       ///< columns, where nodes take nothing and the gap is 1
  int layers = 0;
};

/// Nodes are in topological order. O(sweeps x (nodes + edge lengths)); well under a millisecond for 400 nodes.
LayeredLayout layered_layout(std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
                             const LayerRoom& room = {});

}  // namespace turnpoint
