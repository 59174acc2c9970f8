// SPDX-License-Identifier: Apache-2.0
#include "views/graph/loose_grid.h"

#include <algorithm>

namespace turnpoint::views {

namespace {

constexpr std::size_t kFewLoose = 3;
/// Columns are aligned unless the widest node is so much wider than the usual one.
constexpr double kMuchWider = 1.6;

/// Width of every cell; 0: each node takes its own.
double common_width(const LevelRequest& level, const std::vector<std::size_t>& nodes) {
  std::vector<double> widths;
  for (const std::size_t n : nodes) widths.push_back(level.nodes[n].width());
  std::nth_element(widths.begin(), widths.begin() + std::ptrdiff_t(widths.size() / 2), widths.end());
  const double usual = widths[widths.size() / 2], widest = *std::max_element(widths.begin(), widths.end());
  return widest <= usual * kMuchWider ? widest : 0;
}

}  // namespace

std::vector<bool> loose_nodes(const LevelRequest& level) {
  std::vector<bool> loose(level.nodes.size(), true);
  for (const auto& [from, to] : level.edges) loose[std::size_t(from)] = loose[std::size_t(to)] = false;
  if (std::size_t(std::count(loose.begin(), loose.end(), true)) <= kFewLoose) loose.assign(loose.size(), false);
  return loose;
}

LevelRequest without_loose(const LevelRequest& level, const std::vector<bool>& loose) {
  LevelRequest held;
  held.node_gap = level.node_gap, held.rank_gap = level.rank_gap;
  std::vector<int> number(level.nodes.size(), -1);
  for (std::size_t n = 0; n < level.nodes.size(); ++n) {
    if (loose[n]) continue;
    number[n] = int(held.nodes.size());
    held.nodes.push_back(level.nodes[n]);
  }
  for (const auto& [from, to] : level.edges)
    held.edges.emplace_back(number[std::size_t(from)], number[std::size_t(to)]);
  return held;
}

LevelLayout with_loose_grid(const LevelLayout& held, const LevelRequest& level, const std::vector<bool>& loose,
                            double width) {
  std::vector<std::size_t> nodes;
  for (std::size_t n = 0; n < loose.size(); ++n)
    if (loose[n]) nodes.push_back(n);
  if (nodes.empty()) return held;
  LevelLayout whole;
  whole.own = held.own;
  whole.edges = held.edges;
  whole.nodes.resize(level.nodes.size());
  std::size_t next = 0;
  for (std::size_t n = 0; n < loose.size(); ++n)
    if (!loose[n]) whole.nodes[n] = held.nodes[next++];

  const double cell = common_width(level, nodes), gap = level.node_gap;
  double limit = std::max(width, held.size.width());
  if (cell > 0) {
    // As many columns as there is room for, but no more than as many rows need: the last row is nearly full, too.
    const auto most = std::max<std::size_t>(1, std::size_t((limit + gap) / (cell + gap)));
    const std::size_t rows = (nodes.size() + most - 1) / most, columns = (nodes.size() + rows - 1) / rows;
    limit = double(columns) * (cell + gap) - gap;
  }
  double x = 0, y = next == 0 ? 0 : held.size.height() + level.rank_gap, row = 0, right = held.size.width();
  for (const std::size_t n : nodes) {
    const QSizeF size = level.nodes[n];
    const double taken = std::max(cell, size.width());
    if (x > 0 && x + taken > limit + 0.5) {
      x = 0, y += row + gap, row = 0;
    }
    whole.nodes[n] = QRectF(QPointF(x, y), size);
    right = std::max(right, x + size.width());
    row = std::max(row, size.height());
    x += taken + gap;
  }
  whole.size = {right, y + row};
  return whole;
}

}  // namespace turnpoint::views
