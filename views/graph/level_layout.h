// SPDX-License-Identifier: Apache-2.0
// One level of the graph, laid out left to right: what is asked, what is answered, and our own layered method for when
// the layout process cannot answer.
#pragma once

#include <QByteArray>
#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <QString>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace turnpoint::views {

/// Sizes and gaps in pixels; edges are (from, to) by node number.
struct LevelRequest {
  std::vector<QSizeF> nodes;
  std::vector<std::pair<int, int>> edges;
  double node_gap = 10, rank_gap = 22;

  /// The request in the words of the layout process; equal requests have equal text, so it is the cache's key too.
  QByteArray text() const;
};

struct LevelLayout {
  QSizeF size;
  std::vector<QRectF> nodes;
  std::vector<std::vector<QPointF>> edges;  ///< from border to border; at least two points each
  bool own = false;                         ///< drawn by layered_layout, not by Graphviz
};
using LevelLayoutPtr = std::shared_ptr<const LevelLayout>;

/// Reads the process's answer to `request`; nullopt where it is not a complete, sane answer.
std::optional<LevelLayout> parse_level_layout(const QByteArray& answer, const LevelRequest& request);

/// Longest-path ranks, dummy nodes on long edges, barycentre sweeps, levelled positions. Never fails; edges against the
/// order of nodes do not shape the ranks. Well under a millisecond for 400 nodes.
LevelLayout layered_layout(const LevelRequest& request);

}  // namespace turnpoint::views
