// SPDX-License-Identifier: Apache-2.0
// Colours, widths and texts of a scene for one plan, and what lies under the pointer.
#include <QCoreApplication>
#include <algorithm>
#include <cmath>

#include "views/graph/edge_line.h"
#include "views/graph/graph_scene.h"

namespace turnpoint::views {

namespace {

constexpr float kThinEdge = 1.2f, kWidestEdge = 5.5f;
constexpr int kHeatLevels = 5;

double measure(const OperatorFigures& op, GraphColor color) {
  return color == GraphColor::memory ? static_cast<double>(op.memory_bytes) : op.time_s();
}

/// Heat of each operator by the rank of its value among the plan's distinct values: one giant does not hide the rest.
std::vector<std::uint8_t> heat_by_rank(const PlanFigures& figures, GraphColor color) {
  const std::size_t count = figures.model().operators.size();
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = measure(figures.of(OperatorId(i)), color);
  std::vector<double> distinct = values;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(
      std::unique(distinct.begin(), distinct.end(), [](double a, double b) { return b - a <= 1e-9 * std::abs(b); }),
      distinct.end());
  std::vector<std::uint8_t> heat(count, 0);
  for (std::size_t i = 0; i < count && distinct.size() > 1; ++i) {
    auto rank =
        static_cast<std::size_t>(std::upper_bound(distinct.begin(), distinct.end(), values[i]) - distinct.begin());
    rank = rank > 0 ? rank - 1 : 0;
    heat[i] = static_cast<std::uint8_t>(rank * (kHeatLevels - 1) / (distinct.size() - 1));
  }
  return heat;
}

void decorate_edges(GraphScene& scene, const PlanFigures* figures, EdgeMeasure mode) {
  for (std::size_t e = 0; e < scene.edges(); ++e) {
    scene.edge_reshard[e] = -1, scene.edge_heat[e] = 0, scene.edge_width[e] = kThinEdge;
    if (!figures) continue;
    for (std::uint32_t u = scene.use_begin[e]; u < scene.use_begin[e + 1]; ++u) {
      const int r = figures->reshard(scene.uses[u].tensor, scene.uses[u].consumer);
      if (r < 0) continue;
      const auto bytes = [&](int i) { return figures->reshards[static_cast<std::size_t>(i)].bytes; };
      if (scene.edge_reshard[e] < 0 || bytes(r) > bytes(scene.edge_reshard[e])) scene.edge_reshard[e] = r;
    }
    if (scene.edge_reshard[e] < 0) continue;
    const ReshardFigures& reshard = figures->reshards[static_cast<std::size_t>(scene.edge_reshard[e])];
    const double value = mode == EdgeMeasure::bytes ? reshard.bytes : reshard.time_s;
    const double largest = mode == EdgeMeasure::bytes ? figures->largest_reshard_bytes : figures->largest_reshard_s;
    scene.edge_heat[e] = static_cast<std::uint8_t>(reshard.heat);
    if (largest > 0 && value > 0)
      scene.edge_width[e] = kThinEdge + (kWidestEdge - kThinEdge) * static_cast<float>(std::sqrt(value / largest));
  }
}

}  // namespace

void decorate(GraphScene& scene, const PlanFigures* figures, const ConfigurationColors& colors, GraphColor color,
              EdgeMeasure edges) {
  std::vector<std::uint8_t> index;
  if (figures) {
    if (color == GraphColor::configuration) {
      std::vector<std::uint8_t> slot;
      for (const auto& configuration : figures->configurations)
        slot.push_back(static_cast<std::uint8_t>(colors.slot(configuration.text)));
      index.resize(figures->model().operators.size());
      for (std::size_t i = 0; i < index.size(); ++i) index[i] = slot[figures->of(OperatorId(i)).configuration];
    } else if (color == GraphColor::ratio) {
      for (std::uint32_t i = 0; i < figures->model().operators.size(); ++i)
        index.push_back(static_cast<std::uint8_t>(RatioShares::step_of(figures->ratio()->of(OperatorId(i)))));
    } else if (color == GraphColor::difference) {
      for (const DifferenceMark mark : *figures->difference()) index.push_back(heat_of(mark));
    } else {
      index = heat_by_rank(*figures, color);
    }
    for (std::size_t d = 0; d < scene.op_id.size(); ++d) scene.op_color[d] = index[scene.op_id[d].index];
  } else {
    std::fill(scene.op_color.begin(), scene.op_color.end(), std::uint8_t{0});
  }
  for (GraphCard& card : scene.cards) {
    card.share.fill(0);
    card.time_s = card.reshard_s = 0, card.memory_bytes = 0;
    card.time_text.clear(), card.detail_text.clear();
    const auto operators = card.member_end - card.member_begin;
    if (!figures) {
      card.detail_text = QCoreApplication::translate("GraphView", "%n operators", nullptr, static_cast<int>(operators));
      continue;
    }
    double total = 0;
    std::array<double, 8> sums{};
    for (std::uint32_t m = card.member_begin; m < card.member_end; ++m) {
      const OperatorFigures& op = figures->of(scene.members[m]);
      card.time_s += op.time_s(), card.reshard_s += op.reshard_s, card.memory_bytes += op.memory_bytes;
      // A card of operators that cost nothing (views, inputs) still shows how they are split.
      const double weight = std::max(measure(op, color), 1e-15);
      sums[index[scene.members[m].index]] += weight;
      total += weight;
    }
    for (std::size_t k = 0; k < sums.size(); ++k) card.share[k] = total > 0 ? static_cast<float>(sums[k] / total) : 0;
    card.time_text = figure_text(card.time_s * 1e3);
    card.detail_text = QCoreApplication::translate("GraphView", "%1 operators \u00b7 %2 \u00b7 %3 \u00b7 reshards %4")
                           .arg(operators)
                           .arg(seconds_text(card.time_s), bytes_text(card.memory_bytes), seconds_text(card.reshard_s));
  }
  decorate_edges(scene, figures, edges);
}

std::vector<CardLink> far_links(const Model& model, const GraphScene& scene, int card) {
  std::vector<std::pair<int, bool>> found;
  const GraphCard& here = scene.cards[static_cast<std::size_t>(card)];
  const auto add = [&](OperatorId op, bool incoming) {
    const int other = op.valid() ? scene.card_of[op] : -1;
    if (other >= 0 && other != card && other != card + (incoming ? -1 : 1)) found.emplace_back(other, incoming);
  };
  for (std::uint32_t m = here.member_begin; m < here.member_end; ++m) {
    const Operator& op = model.operators[scene.members[m]];
    for (const Access& input : op.inputs) add(model.tensors[input.tensor].producer, true);
    for (const Access& output : op.outputs)
      for (const auto& use : model.uses[output.tensor]) add(use.op, false);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<CardLink> links;
  for (const auto& [other, incoming] : found) links.push_back({other, incoming});
  return links;
}

SceneHit hit_test(const GraphScene& scene, QPointF position, double reach) {
  SceneHit hit;
  for (std::size_t c = 0; c < scene.cards.size() && hit.card < 0; ++c)
    if (scene.cards[c].rect.contains(position)) hit.card = static_cast<int>(c);
  std::uint32_t begin = scene.connector_begin, end = static_cast<std::uint32_t>(scene.edges());
  if (hit.card >= 0) {
    const GraphCard& card = scene.cards[static_cast<std::size_t>(hit.card)];
    hit.header = card.open && position.y() < card.rect.top() + kPanelHeader;
    for (std::uint32_t d = card.drawn_begin; d < card.drawn_end; ++d)
      if (QRectF(scene.op_x[d], scene.op_y[d], scene.op_w[d], scene.op_h[d]).contains(position)) {
        hit.drawn = static_cast<int>(d);
        return hit;
      }
    if (hit.header || !card.open) return hit;
    begin = card.edge_begin, end = card.edge_end;
  }
  double best = reach;
  for (std::uint32_t e = begin; e < end; ++e)
    for (std::uint32_t p = scene.point_begin[e]; p + 1 < scene.point_begin[e + 1]; ++p) {
      const double d = distance_to_line(position, scene.points[p], scene.points[p + 1]);
      // Of lines that lie on each other the one that moves most is meant.
      if (d < best - 0.01 || (hit.edge >= 0 && d <= best + 0.01 &&
                              scene.edge_width[e] > scene.edge_width[static_cast<std::size_t>(hit.edge)])) {
        best = std::min(best, d);
        hit.edge = static_cast<int>(e);
      }
    }
  return hit;
}

}  // namespace turnpoint::views
