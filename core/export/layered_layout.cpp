// SPDX-License-Identifier: Apache-2.0
#include "core/export/layered_layout.h"

#include <algorithm>

namespace turnpoint {

namespace {

constexpr int kSweeps = 8;

// Nodes and the places of long edges, all in layers.
struct Layered {
  std::vector<int> layer;
  std::vector<std::vector<std::uint32_t>> above, below;  ///< neighbours one layer up and down
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<std::vector<std::uint32_t>> route;  ///< per edge: its places
  std::vector<double> x;
  std::vector<double> takes;  ///< of its layer

  std::uint32_t add_place(int at, double room) {
    layer.push_back(at);
    takes.push_back(room);
    above.emplace_back();
    below.emplace_back();
    return static_cast<std::uint32_t>(layer.size() - 1);
  }
  void connect(std::uint32_t upper, std::uint32_t lower) {
    below[upper].push_back(lower);
    above[lower].push_back(upper);
  }
};

Layered assign_layers(std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
                      const LayerRoom& room) {
  Layered g;
  for (std::size_t n = 0; n < nodes; ++n) g.add_place(0, room.nodes.empty() ? 0 : room.nodes[n]);
  std::vector<std::vector<std::uint32_t>> successors(nodes);
  for (const auto& [from, to] : edges)
    if (from < to) successors[from].push_back(to);
  for (std::uint32_t n = 0; n < nodes; ++n)
    for (const std::uint32_t to : successors[n]) g.layer[to] = std::max(g.layer[to], g.layer[n] + 1);
  // A source stands just above its first reader, not at the top of the drawing.
  std::vector<char> has_input(nodes, false);
  for (const auto& [from, to] : edges)
    if (from < to) has_input[to] = true;
  for (std::uint32_t n = static_cast<std::uint32_t>(nodes); n-- > 0;) {
    if (has_input[n] || successors[n].empty()) continue;
    int lowest = g.layer[successors[n].front()];
    for (const std::uint32_t to : successors[n]) lowest = std::min(lowest, g.layer[to]);
    g.layer[n] = lowest - 1;
  }
  g.route.resize(edges.size());
  std::size_t places = nodes;
  for (const auto& [from, to] : edges)
    if (from < to) places += static_cast<std::size_t>(g.layer[to] - g.layer[from] - 1);
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto [from, to] = edges[e];
    if (from >= to) continue;
    std::uint32_t previous = from;
    for (int at = g.layer[from] + 1; at < g.layer[to] && places <= room.most_places; ++at) {
      const std::uint32_t place = g.add_place(at, room.line);
      g.route[e].push_back(place);
      g.connect(previous, place);
      previous = place;
    }
    g.connect(previous, to);
  }
  return g;
}

void order_rows(Layered& g, int layers) {
  g.rows.assign(static_cast<std::size_t>(layers), {});
  for (std::uint32_t n = 0; n < g.layer.size(); ++n) g.rows[static_cast<std::size_t>(g.layer[n])].push_back(n);
  g.x.assign(g.layer.size(), 0);
  const auto number = [&](const std::vector<std::uint32_t>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) g.x[row[i]] = static_cast<double>(i);
  };
  for (const auto& row : g.rows) number(row);
  std::vector<double> centre(g.layer.size());
  const auto sort_by = [&](std::vector<std::uint32_t>& row, const std::vector<std::vector<std::uint32_t>>& neighbours) {
    for (const std::uint32_t n : row) {
      centre[n] = g.x[n];
      if (neighbours[n].empty()) continue;
      centre[n] = 0;
      for (const std::uint32_t m : neighbours[n]) centre[n] += g.x[m];
      centre[n] /= static_cast<double>(neighbours[n].size());
    }
    std::stable_sort(row.begin(), row.end(), [&](std::uint32_t a, std::uint32_t b) { return centre[a] < centre[b]; });
    number(row);
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (auto& row : g.rows) sort_by(row, g.above);
    for (auto row = g.rows.rbegin(); row != g.rows.rend(); ++row) sort_by(*row, g.below);
  }
}

// Moves a row's places to where they wish to be, as far as their order and distances allow: least squares by pooling
// neighbours that collide.
void settle_row(const std::vector<std::uint32_t>& row, const std::vector<double>& wanted, double gap, Layered& g) {
  struct Block {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Block> blocks;
  std::vector<double> offset(row.size(), 0);  // from the row's first place where all stand as near as they may
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) offset[i] = offset[i - 1] + (g.takes[row[i - 1]] + g.takes[row[i]]) / 2 + gap;
    blocks.push_back({wanted[i] - offset[i], 1});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().sum += last.sum;
      blocks.back().count += last.count;
    }
  }
  std::size_t i = 0;
  for (const Block& block : blocks)
    for (std::size_t k = 0; k < block.count; ++k, ++i) g.x[row[i]] = block.mean() + offset[i];
}

// Straightens: rows follow the row above, then the row below, and so on; the last pass goes down, so that chains hang
// straight from where they begin.
void place_columns(Layered& g, double gap) {
  const auto middle = [&](const std::vector<std::uint32_t>& neighbours) {
    double sum = 0;
    for (const std::uint32_t m : neighbours) sum += g.x[m];
    return sum / static_cast<double>(neighbours.size());
  };
  std::vector<double> wanted;
  const auto settle = [&](const std::vector<std::uint32_t>& row, const auto& first, const auto& second) {
    wanted.clear();
    for (const std::uint32_t n : row)
      wanted.push_back(!first[n].empty() ? middle(first[n]) : !second[n].empty() ? middle(second[n]) : g.x[n]);
    settle_row(row, wanted, gap, g);
  };
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    if (sweep > 0)
      for (auto row = g.rows.rbegin(); row != g.rows.rend(); ++row) settle(*row, g.below, g.above);
    for (const auto& row : g.rows) settle(row, g.above, g.below);
  }
  const double least = g.x.empty() ? 0 : *std::min_element(g.x.begin(), g.x.end());
  for (double& x : g.x) x -= least;
}

}  // namespace

LayeredLayout layered_layout(std::size_t nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& edges,
                             const LayerRoom& room) {
  LayeredLayout layout;
  if (nodes == 0) return layout;
  Layered g = assign_layers(nodes, edges, room);
  layout.layers = 1 + *std::max_element(g.layer.begin(), g.layer.end());
  order_rows(g, layout.layers);
  place_columns(g, room.gap);
  const auto at = [&](std::uint32_t n) { return LayeredLayout::Point{g.x[n], static_cast<double>(g.layer[n])}; };
  for (std::uint32_t n = 0; n < nodes; ++n) layout.nodes.push_back(at(n));
  for (std::size_t e = 0; e < edges.size(); ++e) {
    auto& line = layout.edges.emplace_back();
    line.push_back(at(edges[e].first));
    for (const std::uint32_t place : g.route[e]) line.push_back(at(place));
    line.push_back(at(edges[e].second));
  }
  layout.width = 1 + *std::max_element(g.x.begin(), g.x.end());
  return layout;
}

}  // namespace turnpoint
