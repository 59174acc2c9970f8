// SPDX-License-Identifier: Apache-2.0
// Our own layered drawing of a level (core/export/layered_layout.h), which stands in when Graphviz is missing or late:
// layers become columns as wide as their widest box.
#include "core/export/layered_layout.h"

#include <algorithm>

#include "views/graph/level_layout.h"

namespace turnpoint::views {

LevelLayout layered_layout(const LevelRequest& request) {
  LevelLayout layout;
  layout.own = true;
  if (request.nodes.empty()) return layout;
  LayerRoom room;
  for (const QSizeF& size : request.nodes) room.nodes.push_back(size.height());
  room.line = 2;
  room.gap = request.node_gap;
  room.most_places = 20'000;  // beyond, the picture would be unreadable anyway
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> edges(request.edges.begin(), request.edges.end());
  const auto drawn = turnpoint::layered_layout(request.nodes.size(), edges, room);
  const auto layer = [](const LayeredLayout::Point& point) { return static_cast<std::size_t>(point.y); };
  std::vector<double> middle(static_cast<std::size_t>(drawn.layers), 0);  // of each column; its half width at first
  for (std::size_t i = 0; i < drawn.nodes.size(); ++i) {
    double& half = middle[layer(drawn.nodes[i])];
    half = std::max(half, request.nodes[i].width() / 2);
  }
  double right = 0, top = drawn.nodes[0].x, bottom = top;
  for (double& column : middle) {
    const double half = column;
    column = right + half;
    right += 2 * half + request.rank_gap;
  }
  for (std::size_t i = 0; i < drawn.nodes.size(); ++i) {
    top = std::min(top, drawn.nodes[i].x - room.nodes[i] / 2);
    bottom = std::max(bottom, drawn.nodes[i].x + room.nodes[i] / 2);
  }
  for (const auto& line : drawn.edges)
    for (const auto& point : line) top = std::min(top, point.x), bottom = std::max(bottom, point.x);
  layout.size = {right - request.rank_gap, bottom - top};
  const auto place = [&](const LayeredLayout::Point& at) { return QPointF(middle[layer(at)], at.x - top); };
  for (std::size_t i = 0; i < drawn.nodes.size(); ++i) {
    QRectF box(QPointF(), request.nodes[i]);
    box.moveCenter(place(drawn.nodes[i]));
    layout.nodes.push_back(box);
  }
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const QRectF &from = layout.nodes[edges[e].first], &to = layout.nodes[edges[e].second];
    std::vector<QPointF> points{{from.right(), from.center().y()}};
    for (std::size_t i = 1; i + 1 < drawn.edges[e].size(); ++i) points.push_back(place(drawn.edges[e][i]));
    points.emplace_back(to.left(), to.center().y());
    layout.edges.push_back(std::move(points));
  }
  return layout;
}

}  // namespace turnpoint::views
