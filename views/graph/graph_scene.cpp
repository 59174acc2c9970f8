// SPDX-License-Identifier: Apache-2.0
#include "views/graph/graph_scene.h"

#include <QHash>
#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "views/common/format.h"
#include "views/graph/card_lines.h"
#include "views/graph/strip_wrap.h"

namespace turnpoint::views {

namespace {

constexpr double kMargin = 26;  // around the scene; row connectors run in it
constexpr double kCardHeight = 38;
constexpr double kCardGap = 22;
// Between rows; and where lines to cards that are not the next run there.
constexpr double kRowGap = 22, kRowGapWithLanes = 34;
constexpr double kCardPad = 14;
constexpr double kOperatorHeight = 34;  // two lines: name, and kind with sizes
constexpr double kPort = 2;             // entry and exit of an open card

}  // namespace

QString kind_line(const Model& model, OperatorId op) {
  const Operator& of = model.operators[op];
  QStringList sizes;
  if (!of.outputs.empty()) {
    const auto& shape = model.tensors[of.outputs.front().tensor].shape;
    for (const auto size : shape) sizes << QString::number(size);
    if (sizes.size() > 1 && shape.front() == model.batch) sizes.removeFirst();
  }
  const bool said = of.detail.empty() || std::string_view(of.name).substr(0, of.detail.size() + 1) == of.detail + " ";
  const QString shown = sizes.join(QStringLiteral("\u00d7"));
  return said ? shown : (to_qt(of.detail) + u' ' + shown).trimmed();
}

SceneBuilder::SceneBuilder(const Model& model, const Hierarchy& hierarchy, const FoldState& fold,
                           const SceneStyle& style)
    : model_(model), hierarchy_(hierarchy), fold_(fold), style_(style) {
  card_of_.resize(model.operators.size(), -1);
  choose_cards();
  panels_.resize(cards_.size());
  for (std::size_t c = 0; c < cards_.size(); ++c)
    if (cards_[c].open) panels_[c] = make_panel(cards_[c]);
  between_ = uses_between_cards();
  const bool lanes = std::any_of(between_.begin(), between_.end(),
                                 [](const auto& one) { return one.first.first + 1 != one.first.second; });
  row_gap_ = lanes ? kRowGapWithLanes : kRowGap;
}

void SceneBuilder::choose_cards() {
  if (model_.operators.empty()) return;
  const auto& root = hierarchy_.groups[0];
  lone_panel_ = root.operators <= kLargestPanel &&
                std::none_of(root.children.begin(), root.children.end(), [](auto child) { return child.is_group; });
  if (lone_panel_) return add_card(0, {}, true);
  std::vector<Hierarchy::Child> open(root.children.rbegin(), root.children.rend());
  while (!open.empty()) {
    const auto child = open.back();
    open.pop_back();
    if (!child.is_group) {
      add_card(kNoGroup, OperatorId(child.index), false);
      continue;
    }
    const auto& group = hierarchy_.groups[child.index];
    const bool replaced = fold_.containers[child.index] || group.operators > kLargestPanel;
    if (fold_.expanded[child.index] && replaced) {
      open.insert(open.end(), group.children.rbegin(), group.children.rend());
    } else {
      add_card(child.index, {}, fold_.expanded[child.index]);
    }
  }
}

void SceneBuilder::add_card(std::uint32_t group, OperatorId op, bool open) {
  GraphCard card;
  card.group = group, card.op = op, card.open = open;
  card.member_begin = static_cast<std::uint32_t>(members_.size());
  if (group == kNoGroup) {
    members_.push_back(op);
    card.name = to_qt(hierarchy_.label[op]);
  } else {
    const auto inside = hierarchy_.operators_of(group);
    members_.insert(members_.end(), inside.begin(), inside.end());
    card.name = group == 0 ? to_qt(model_.name) : to_qt(hierarchy_.groups[group].name);
    // "3" or "block.3" says little where several containers have one: "stage1.3".
    const std::string& name = hierarchy_.groups[group].name;
    const std::uint32_t container = hierarchy_.groups[group].parent;
    if (group != 0 && name.size() > name_stem(name).size() && (container != 0 || name_stem(name).empty())) {
      const QString above = to_qt(hierarchy_.groups[group].path).section(QLatin1Char('/'), -2, -2);
      const auto digits = name.find_last_not_of("0123456789") + 1;
      // Of groups that we have made ourselves nobody knows the number.
      if (!above.isEmpty() && !above.startsWith(QLatin1Char('#')))
        card.name = above + QLatin1Char('.') + to_qt(name.substr(digits));
    }
  }
  card.member_end = static_cast<std::uint32_t>(members_.size());
  for (std::uint32_t m = card.member_begin; m < card.member_end; ++m)
    card_of_[members_[m]] = static_cast<int>(cards_.size());
  cards_.push_back(std::move(card));
}

SceneBuilder::Panel SceneBuilder::make_panel(const GraphCard& card) const {
  Panel panel;
  std::unordered_map<std::uint32_t, int> node_of;
  for (std::uint32_t m = card.member_begin; m < card.member_end; ++m) {
    const OperatorId op = members_[m];
    node_of[op.index] = static_cast<int>(panel.request.nodes.size());
    const double name = style_.small_font.horizontalAdvance(to_qt(hierarchy_.label[op]));
    const double kind = style_.small_font.horizontalAdvance(kind_line(model_, op));
    panel.request.nodes.emplace_back(std::ceil(std::clamp(std::max(name, kind) + 14, 44.0, 112.0)), kOperatorHeight);
  }
  std::unordered_map<std::uint64_t, std::size_t> known;
  const auto add = [&](int from, int to, const EdgeUse& use) {
    const auto [at, fresh] =
        known.try_emplace((std::uint64_t(std::uint32_t(from)) << 32) | std::uint32_t(to), panel.uses.size());
    if (fresh) {
      panel.request.edges.emplace_back(from, to);
      panel.uses.emplace_back();
    }
    panel.uses[at->second].push_back(use);
  };
  const auto port = [&](int& number) {
    if (number < 0) {
      number = static_cast<int>(panel.request.nodes.size());
      panel.request.nodes.emplace_back(kPort, kPort);
    }
    return number;
  };
  for (std::uint32_t m = card.member_begin; m < card.member_end; ++m) {
    const OperatorId op = members_[m];
    for (const Access& input : model_.operators[op].inputs) {
      const OperatorId producer = model_.tensors[input.tensor].producer;
      if (!producer.valid()) continue;
      const auto inside = node_of.find(producer.index);
      const int from = inside != node_of.end() ? inside->second : port(panel.in);
      add(from, node_of[op.index], {input.tensor, producer, op});
    }
    for (const Access& output : model_.operators[op].outputs)
      for (const auto& use : model_.uses[output.tensor])
        if (!node_of.count(use.op.index)) add(node_of[op.index], port(panel.out), {output.tensor, op, use.op});
  }
  return panel;
}

std::vector<LevelRequest> SceneBuilder::levels() const {
  std::vector<LevelRequest> levels;
  QHash<QByteArray, bool> known;
  for (const Panel& panel : panels_) {
    if (panel.request.nodes.empty()) continue;
    bool& seen = known[panel.request.text()];
    if (!seen) levels.push_back(panel.request);
    seen = true;
  }
  return levels;
}

double SceneBuilder::card_width() const {
  double widest = 0;
  for (const GraphCard& card : cards_) {
    if (card.open) continue;
    const double figure = card.group == kNoGroup ? 0 : style_.small_font.horizontalAdvance(QStringLiteral(" 00.0"));
    widest = std::max(widest, style_.name_font.horizontalAdvance(card.name) + figure);
  }
  return std::ceil(std::clamp(widest + 12, 52.0, 128.0));
}

double SceneBuilder::choose_width(const std::vector<QSizeF>& sizes, double least_width, double aspect) const {
  double area = 0;
  for (const QSizeF& size : sizes) area += (size.width() + kCardGap) * (size.height() + row_gap_);
  return std::max(least_width, std::sqrt(area * std::max(aspect, 0.2)) + 2 * kMargin);
}

std::shared_ptr<GraphScene> SceneBuilder::build(const std::function<LevelLayoutPtr(const LevelRequest&)>& find,
                                                double least_width, double aspect) {
  auto scene = std::make_shared<GraphScene>();
  scene->lone_panel = lone_panel_;
  scene->members = members_;
  scene->card_of = card_of_;
  scene->drawn_of.resize(model_.operators.size(), -1);
  scene->card_width = card_width();

  // Folded cards alone decide the width, so that opening one does not move every other line.
  std::vector<QSizeF> sizes(cards_.size(), QSizeF(scene->card_width, kCardHeight));
  std::size_t open = 0;
  for (const GraphCard& card : cards_) open += card.open;
  double width = choose_width(sizes, least_width, aspect);
  std::vector<LevelLayoutPtr> found(cards_.size());
  for (std::size_t c = 0; c < cards_.size(); ++c)
    if (cards_[c].open) found[c] = find(panels_[c].request);
  if (open * 2 > cards_.size()) {
    for (std::size_t c = 0; c < cards_.size(); ++c)
      if (found[c]) sizes[c] = found[c]->size + QSizeF(2 * kCardPad, kPanelHeader + 2 * kCardPad);
    width = choose_width(sizes, least_width, aspect);
  }
  std::vector<LevelLayout> inner(cards_.size());
  for (std::size_t c = 0; c < cards_.size(); ++c) {
    if (!found[c]) continue;
    inner[c] = wrap_into_strips(*found[c], width - 2 * kMargin - 2 * kCardPad);
    const double title = style_.name_font.horizontalAdvance(cards_[c].name) + 40;
    sizes[c] = {std::max(inner[c].size.width() + 2 * kCardPad, std::min(title, width - 2 * kMargin)),
                inner[c].size.height() + kPanelHeader + 1.5 * kCardPad};
  }
  place_rows(*scene, sizes, inner, width);
  return scene;
}

void SceneBuilder::place_rows(GraphScene& scene, const std::vector<QSizeF>& sizes,
                              const std::vector<LevelLayout>& inner, double width) const {
  scene.cards = cards_;
  std::vector<int> row(cards_.size(), 0);
  std::vector<double> row_bottom;
  double x = kMargin, y = kMargin * 0.6, row_height = 0, right = 0;
  std::size_t row_begin = 0;
  const auto end_row = [&](std::size_t end) {
    for (std::size_t c = row_begin; c < end; ++c) {
      QRectF& rect = scene.cards[c].rect;
      rect.moveTop(y + std::floor((row_height - rect.height()) / 2));
      row[c] = static_cast<int>(row_bottom.size());
    }
    row_bottom.push_back(y + row_height);
    row_begin = end;
    y += row_height + row_gap_;
    x = kMargin, row_height = 0;
  };
  for (std::size_t c = 0; c < cards_.size(); ++c) {
    if (c > row_begin && x + sizes[c].width() > width - kMargin) end_row(c);
    scene.cards[c].rect = QRectF(QPointF(x, 0), sizes[c]);
    row_height = std::max(row_height, sizes[c].height());
    right = std::max(right, x + sizes[c].width());
    x += sizes[c].width() + kCardGap;
  }
  if (!cards_.empty()) end_row(cards_.size());
  scene.size = {right + kMargin, y};
  for (std::size_t c = 0; c < cards_.size(); ++c) {
    GraphCard& card = scene.cards[c];
    card.in_y = card.out_y = card.rect.center().y();
    card.edge_begin = static_cast<std::uint32_t>(scene.edges());
    card.drawn_begin = static_cast<std::uint32_t>(scene.op_id.size());
    if (card.open) fill_panel(scene, card, panels_[c], inner[c]);
    card.drawn_end = static_cast<std::uint32_t>(scene.op_id.size());
    card.edge_end = static_cast<std::uint32_t>(scene.edges());
  }
  scene.connector_begin = static_cast<std::uint32_t>(scene.edges());
  connect_cards(scene, row, row_bottom);
  scene.op_color.assign(scene.op_id.size(), 0);
  scene.edge_width.assign(scene.edges(), 1);
  scene.edge_heat.assign(scene.edges(), 0);
  scene.edge_reshard.assign(scene.edges(), -1);
}

void SceneBuilder::fill_panel(GraphScene& scene, GraphCard& card, const Panel& panel, const LevelLayout& inner) const {
  const QPointF origin = card.rect.topLeft() + QPointF(kCardPad, kPanelHeader + kCardPad / 2);
  const std::size_t operators = card.member_end - card.member_begin;
  for (std::size_t i = 0; i < operators; ++i) {
    const QRectF box = inner.nodes[i].translated(origin);
    const OperatorId op = members_[card.member_begin + i];
    scene.drawn_of[op] = static_cast<int>(scene.op_id.size());
    scene.op_id.push_back(op);
    scene.op_x.push_back(static_cast<float>(box.x())), scene.op_y.push_back(static_cast<float>(box.y()));
    scene.op_w.push_back(static_cast<float>(box.width())), scene.op_h.push_back(static_cast<float>(box.height()));
    scene.op_name.push_back(to_qt(hierarchy_.label[op]));
    scene.op_kind.push_back(kind_line(model_, op));
  }
  if (panel.in >= 0) card.in_y = origin.y() + inner.nodes[static_cast<std::size_t>(panel.in)].center().y();
  if (panel.out >= 0) card.out_y = origin.y() + inner.nodes[static_cast<std::size_t>(panel.out)].center().y();
  for (std::size_t e = 0; e < inner.edges.size(); ++e) {
    const auto [from, to] = panel.request.edges[e];
    if (from == panel.in) scene.points.emplace_back(card.rect.left(), card.in_y);
    for (const QPointF& p : inner.edges[e]) scene.points.push_back(p + origin);
    if (to == panel.out) scene.points.emplace_back(card.rect.right(), card.out_y);
    scene.point_begin.push_back(static_cast<std::uint32_t>(scene.points.size()));
    scene.uses.insert(scene.uses.end(), panel.uses[e].begin(), panel.uses[e].end());
    scene.use_begin.push_back(static_cast<std::uint32_t>(scene.uses.size()));
  }
}

std::map<std::pair<int, int>, std::vector<EdgeUse>> SceneBuilder::uses_between_cards() const {
  std::map<std::pair<int, int>, std::vector<EdgeUse>> between;
  for (std::uint32_t i = 0; i < model_.operators.size(); ++i) {
    const OperatorId consumer{std::size_t(i)};
    for (const Access& input : model_.operators[consumer].inputs) {
      const OperatorId producer = model_.tensors[input.tensor].producer;
      if (!producer.valid() || card_of_[producer] < 0 || card_of_[producer] == card_of_[consumer]) continue;
      between[{card_of_[producer], card_of_[consumer]}].push_back({input.tensor, producer, consumer});
    }
  }
  return between;
}

void SceneBuilder::connect_cards(GraphScene& scene, const std::vector<int>& row,
                                 const std::vector<double>& row_bottom) const {
  std::vector<CardPlace> places;
  for (std::size_t c = 0; c < scene.cards.size(); ++c)
    places.push_back({scene.cards[c].rect, scene.cards[c].in_y, scene.cards[c].out_y, row[c]});
  CardLines lines(std::move(places), row_bottom, scene.size.width(), row_gap_, kMargin);
  for (const auto& [cards, uses] : between_) {
    const auto points = lines.line(std::size_t(cards.first), std::size_t(cards.second));
    scene.points.insert(scene.points.end(), points.begin(), points.end());
    scene.point_begin.push_back(static_cast<std::uint32_t>(scene.points.size()));
    scene.uses.insert(scene.uses.end(), uses.begin(), uses.end());
    scene.use_begin.push_back(static_cast<std::uint32_t>(scene.uses.size()));
  }
}

}  // namespace turnpoint::views
