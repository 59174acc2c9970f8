// SPDX-License-Identifier: Apache-2.0
#include "views/graph/level_layout.h"

#include <cmath>

namespace turnpoint::views {

namespace {

constexpr double kLargestCoordinate = 1e7;

/// Reads the numbers of one line after its first word.
std::optional<std::vector<double>> numbers(const QByteArray& line, const char* word) {
  const QList<QByteArray> parts = line.split(' ');
  if (parts.isEmpty() || parts.front() != word) return std::nullopt;
  std::vector<double> values;
  for (qsizetype i = 1; i < parts.size(); ++i) {
    bool good = false;
    const double value = parts[i].toDouble(&good);
    if (!good || !std::isfinite(value) || std::abs(value) > kLargestCoordinate) return std::nullopt;
    values.push_back(value);
  }
  return values;
}

}  // namespace

QByteArray LevelRequest::text() const {
  QByteArray text = "layout 1 " + QByteArray::number(nodes.size()) + ' ' + QByteArray::number(edges.size()) + ' ' +
                    QByteArray::number(node_gap) + ' ' + QByteArray::number(rank_gap) + " polyline\n";
  for (const QSizeF& size : nodes)
    text += "node " + QByteArray::number(size.width()) + ' ' + QByteArray::number(size.height()) + '\n';
  for (const auto& [from, to] : edges) text += "edge " + QByteArray::number(from) + ' ' + QByteArray::number(to) + '\n';
  return text + "end\n";
}

std::optional<LevelLayout> parse_level_layout(const QByteArray& answer, const LevelRequest& request) {
  const QList<QByteArray> lines = answer.trimmed().split('\n');
  const auto expected = qsizetype(request.nodes.size() + request.edges.size() + 2);
  if (lines.size() != expected || lines.back() != "end") return std::nullopt;
  LevelLayout layout;
  qsizetype at = 0;
  const auto size = numbers(lines[at++], "ok");
  if (!size || size->size() != 2 || (*size)[0] < 0 || (*size)[1] < 0) return std::nullopt;
  layout.size = {(*size)[0], (*size)[1]};
  for (std::size_t i = 0; i < request.nodes.size(); ++i) {
    const auto box = numbers(lines[at++], "node");
    if (!box || box->size() != 4) return std::nullopt;
    layout.nodes.emplace_back((*box)[0], (*box)[1], (*box)[2], (*box)[3]);
  }
  for (const auto& [from, to] : request.edges) {
    const auto line = numbers(lines[at++], "edge");
    if (!line || line->empty() || line->size() != 1 + 2 * static_cast<std::size_t>((*line)[0])) return std::nullopt;
    std::vector<QPointF> points;
    for (std::size_t i = 1; i + 1 < line->size(); i += 2) points.emplace_back((*line)[i], (*line)[i + 1]);
    if (points.size() < 2) {
      const QRectF &a = layout.nodes[static_cast<std::size_t>(from)], &b = layout.nodes[static_cast<std::size_t>(to)];
      points = {QPointF(a.right(), a.center().y()), QPointF(b.left(), b.center().y())};
    }
    layout.edges.push_back(std::move(points));
  }
  return layout;
}

}  // namespace turnpoint::views
