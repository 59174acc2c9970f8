// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_scene.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "views/common/format.h"
#include "views/graph/edge_line.h"
#include "views/graph/loose_grid.h"
#include "views/graph/strip_wrap.h"

namespace turnpoint::views {

namespace {

constexpr double kAround = 20;
constexpr double kGroupPad = 12;
constexpr double kTaskHeight = 26, kFoldHeight = 34, kGroupHeight = 52;
constexpr double kInnerAspect = 2.6;  // of an open box, as far as its level can be wrapped
/// A wrapped level that needs much more room for its lines than this was better off as it came.
constexpr double kMostWiderByLines = 1.3, kMostAreaByLines = 2.5;
/// Lines of a level beyond this many per box are a web in which none can be followed.
constexpr std::size_t kLinesPerBox = 3;

/// By child of `group`: the length of the longest way to it inside the group.
std::vector<std::uint32_t> ranks_in(const TaskHierarchy& h, std::uint32_t group) {
  const auto& g = h.groups[group];
  std::vector<std::uint32_t> rank(g.child_end - g.child_begin, 0);
  // Edges lead to later children and are sorted by where they begin.
  for (std::uint32_t e = g.edge_begin; e < g.edge_end; ++e)
    rank[h.edges[e].to] = std::max(rank[h.edges[e].to], rank[h.edges[e].from] + 1);
  return rank;
}

/// Of a crowded level those between neighbours in rank, heaviest first, and the heaviest that leads to each box, so
/// that none hangs loose. Lines from far away run past most of the boxes between and hold the level together as one
/// wide band: they are shown of what is picked or under the pointer.
std::vector<std::uint32_t> edges_to_draw(const TaskHierarchy& h, std::uint32_t group) {
  const auto& g = h.groups[group];
  std::vector<std::uint32_t> edges(g.edge_end - g.edge_begin);
  for (std::size_t e = 0; e < edges.size(); ++e) edges[e] = g.edge_begin + std::uint32_t(e);
  const std::size_t limit = kLinesPerBox * (g.child_end - g.child_begin);
  if (edges.size() <= limit) return edges;
  const auto rank = ranks_in(h, group);
  std::erase_if(edges, [&](std::uint32_t e) { return rank[h.edges[e].to] != rank[h.edges[e].from] + 1; });
  const auto weight = [&](std::uint32_t e) {
    return std::tuple(double(h.edges[e].bytes()) + h.edges[e].seconds, h.edges[e].there + h.edges[e].back);
  };
  std::stable_sort(edges.begin(), edges.end(), [&](auto a, auto b) { return weight(a) > weight(b); });
  std::vector<bool> reached(g.child_end - g.child_begin, false);
  std::vector<std::uint32_t> kept;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    const auto to = h.edges[edges[i]].to;
    if (i < limit || !reached[to]) kept.push_back(edges[i]);
    reached[to] = true;
  }
  std::sort(kept.begin(), kept.end());
  return kept;
}

/// The level as it came, or in strips, with high boxes in strips of their own or not: whichever is largest when it is
/// fitted into a window of `aspect`.
LevelLayout wrapped(const LevelLayout& level, double width, double aspect) {
  const auto needs = [aspect](const LevelLayout& l) { return std::max(l.size.width() / aspect, l.size.height()); };
  const auto area = [](const LevelLayout& l) { return l.size.width() * l.size.height(); };
  double widest = width;
  for (const QRectF& node : level.nodes) widest = std::max(widest, node.width());
  LevelLayout best = level;
  for (const bool alone : {false, true}) {
    LevelLayout strips = wrap_into_strips(level, width, alone);
    const bool mostly_lines =
        strips.size.width() > widest * kMostWiderByLines || area(strips) > area(level) * kMostAreaByLines;
    if (!mostly_lines && needs(strips) < needs(best)) best = std::move(strips);
  }
  return best;
}

}  // namespace

int TaskScene::box_of(const TaskHierarchy& h, TaskIndex task) const {
  for (std::uint32_t g = h.parent[task]; g != kNone; g = h.groups[g].parent) {
    const int box = box_of_group[g];
    if (box < 0) continue;
    const TaskBox& around = boxes[std::size_t(box)];
    return around.open ? int(around.child_begin + h.ordinal[task]) : box;
  }
  return -1;
}

std::span<const TaskIndex> tasks_in(const TaskHierarchy& h, const TaskBox& box) {
  return box.is_group ? h.tasks_of(box.index) : std::span(&h.order[h.position[box.index]], 1);
}

TaskSceneBuilder::TaskSceneBuilder(const TaskHierarchy& hierarchy, const std::vector<bool>& open,
                                   const SceneStyle& style)
    : hierarchy_(hierarchy), style_(style), level_of_(hierarchy.groups.size(), -1) {
  std::vector<std::uint32_t> groups{0};
  for (std::size_t i = 0; i < groups.size(); ++i) {
    level_of_[groups[i]] = int(i);
    boxes_ += hierarchy.children_of(groups[i]).size();
    for (const auto& child : hierarchy.children_of(groups[i]))
      if (child.is_group && open[child.index]) groups.push_back(child.index);
  }
  levels_.resize(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) levels_[i].group = groups[i];
}

QSizeF TaskSceneBuilder::closed_size(const TaskHierarchy::Child& child) const {
  if (!child.is_group) {
    const double text = style_.small_font.horizontalAdvance(to_qt(hierarchy_.label(child.index)));
    return {std::ceil(std::clamp(text + 14, 52.0, 130.0)), kTaskHeight};
  }
  const auto& group = hierarchy_.groups[child.index];
  const QString time = time_text(group.time_s());
  const double name = style_.name_font.horizontalAdvance(to_qt(hierarchy_.names[child.index]));
  const double text = name + 10 + style_.small_font.horizontalAdvance(time);
  if (group.made == TaskHierarchy::Made::fold) return {std::ceil(std::clamp(text + 12, 72.0, 150.0)), kFoldHeight};
  const double second = style_.small_font.horizontalAdvance(QStringLiteral("000,000 tasks \u00b7 000 MiB"));
  return {std::ceil(std::clamp(std::max(text, second) + 14, 96.0, 190.0)), kGroupHeight};
}

/// False while an open child has no size yet.
bool TaskSceneBuilder::make_request(Level& level) const {
  level.whole = {};
  for (const auto& child : hierarchy_.children_of(level.group)) {
    const int inner = child.is_group ? level_of_[child.index] : -1;
    const QSizeF size = inner >= 0 ? levels_[std::size_t(inner)].size : closed_size(child);
    if (size.isEmpty()) return false;
    level.whole.nodes.push_back(size);
  }
  level.edges = edges_to_draw(hierarchy_, level.group);
  const auto& group = hierarchy_.groups[level.group];
  level.left_out = group.edge_end - group.edge_begin - level.edges.size();
  for (const std::uint32_t e : level.edges)
    level.whole.edges.emplace_back(int(hierarchy_.edges[e].from), int(hierarchy_.edges[e].to));
  level.whole.node_gap = 10, level.whole.rank_gap = 26;
  level.loose = loose_nodes(level.whole);
  level.request = without_loose(level.whole, level.loose);
  return true;
}

std::vector<LevelRequest> TaskSceneBuilder::solve(const Find& find, QSizeF room) {
  std::vector<LevelRequest> missing;
  for (std::size_t i = levels_.size(); i-- > 0;) {
    Level& level = levels_[i];
    level.size = {};
    if (!make_request(level)) continue;
    const bool nothing_held = level.request.nodes.empty();
    const LevelLayoutPtr found = nothing_held ? std::make_shared<const LevelLayout>() : find(level.request);
    if (!found) {
      missing.push_back(level.request);
      continue;
    }
    const bool root = level.group == 0;
    const double aspect = root ? std::max(0.3, room.width() / std::max(1.0, room.height())) : kInnerAspect;
    // Of the boxes with the room around them: one high box must not make the others' strips longer.
    double area = 0;
    for (const QRectF& node : found->nodes) area += (node.width() + 26) * (node.height() + 30);
    area = std::min(1.2 * area, found->size.width() * (found->size.height() + 24));
    const double least = root ? room.width() - 2 * kAround : 320;
    level.layout = wrapped(*found, std::max(least, std::sqrt(area * aspect)), aspect);
    double loose_area = 0;
    for (std::size_t n = 0; n < level.loose.size(); ++n)
      if (level.loose[n]) loose_area += (level.whole.nodes[n].width() + 10) * (level.whole.nodes[n].height() + 10);
    const double whole_area = loose_area + level.layout.size.width() * level.layout.size.height();
    level.layout =
        with_loose_grid(level.layout, level.whole, level.loose, std::max(least, std::sqrt(whole_area * aspect)));
    if (root) {
      level.size = level.layout.size + QSizeF(2 * kAround, 2 * kAround);
    } else {
      const double title =
          style_.name_font.horizontalAdvance(to_qt(hierarchy_.names[level.group])) +
          style_.small_font.horizontalAdvance(QStringLiteral("000,000 tasks \u00b7 000 MiB \u00b7 000 ms")) + 48;
      level.size = {std::ceil(std::max(level.layout.size.width() + 2 * kGroupPad, std::min(title, 420.0))),
                    std::ceil(level.layout.size.height() + kPanelHeader + 1.5 * kGroupPad)};
    }
  }
  return missing;
}

std::vector<LevelRequest> TaskSceneBuilder::missing(const Find& find) { return solve(find, {1000, 500}); }

std::shared_ptr<TaskScene> TaskSceneBuilder::build(const Find& find, QSizeF room) {
  (void)solve(find, room);
  auto scene = std::make_shared<TaskScene>();
  scene->size = levels_.front().size;
  scene->box_of_group.assign(hierarchy_.groups.size(), -1);
  scene->boxes.reserve(boxes_);
  TaskBox root;
  root.is_group = root.open = true;
  root.rect = QRectF(QPointF(0, 0), scene->size);
  scene->boxes.push_back(root);
  for (std::size_t b = 0; b < scene->boxes.size(); ++b) {
    if (!scene->boxes[b].is_group) continue;
    scene->box_of_group[scene->boxes[b].index] = int(b);
    const int level = level_of_[scene->boxes[b].index];
    if (level >= 0) fill(*scene, b, levels_[std::size_t(level)]);
  }
  double sum = 0;
  std::size_t closed = 0;
  for (const TaskBox& box : scene->boxes)
    if (!box.open) sum += box.rect.width(), ++closed;
  if (closed > 0) scene->typical_width = sum / double(closed);
  scene->line_width.assign(scene->lines(), 1);
  scene->line_heat.assign(scene->lines(), 0);
  scene->line_critical.assign(scene->lines(), false);
  return scene;
}

void TaskSceneBuilder::fill(TaskScene& scene, std::size_t index, const Level& level) const {
  scene.boxes[index].open = true;
  const QRectF around = scene.boxes[index].rect;
  // A title wider than its level leaves room at both sides.
  const double free = around.width() - level.layout.size.width();
  const QPointF origin =
      around.topLeft() + (index == 0 ? QPointF(kAround, kAround) : QPointF(free / 2, kPanelHeader + kGroupPad / 2));
  scene.boxes[index].child_begin = std::uint32_t(scene.boxes.size());
  const auto children = hierarchy_.children_of(level.group);
  for (std::size_t c = 0; c < children.size(); ++c) {
    TaskBox box;
    box.rect = level.layout.nodes[c].translated(origin);
    box.index = children[c].index, box.is_group = children[c].is_group;
    box.parent = int(index);
    box.fold = box.is_group && hierarchy_.groups[box.index].made == TaskHierarchy::Made::fold;
    box.name = to_qt(box.is_group ? std::string(hierarchy_.names[box.index]) : hierarchy_.label(box.index));
    scene.boxes.push_back(std::move(box));
  }
  scene.boxes[index].child_end = std::uint32_t(scene.boxes.size());
  scene.boxes[index].edge_begin = std::uint32_t(scene.lines());
  for (std::size_t e = 0; e < level.edges.size(); ++e) {
    for (const QPointF& p : level.layout.edges[e]) scene.points.push_back(p + origin);
    scene.point_begin.push_back(std::uint32_t(scene.points.size()));
    scene.line_edge.push_back(level.edges[e]);
  }
  scene.boxes[index].edge_end = std::uint32_t(scene.lines());
  scene.lines_left_out += level.left_out;
}

std::vector<std::uint32_t> lines_left_out_of(const TaskScene& scene, const TaskHierarchy& h, int box,
                                             std::size_t most) {
  std::vector<std::uint32_t> found;
  if (box <= 0) return found;
  const TaskBox& around = scene.boxes[std::size_t(scene.boxes[std::size_t(box)].parent)];
  const auto ordinal = std::uint32_t(box) - around.child_begin;
  const auto drawn_begin = scene.line_edge.begin() + around.edge_begin,
             drawn_end = scene.line_edge.begin() + around.edge_end;
  const auto& g = h.groups[around.index];
  for (std::uint32_t e = g.edge_begin; e < g.edge_end; ++e)
    if ((h.edges[e].from == ordinal || h.edges[e].to == ordinal) && !std::binary_search(drawn_begin, drawn_end, e))
      found.push_back(e);
  const auto weight = [&](std::uint32_t e) { return double(h.edges[e].bytes()) + h.edges[e].seconds; };
  std::stable_sort(found.begin(), found.end(), [&](auto a, auto b) { return weight(a) > weight(b); });
  found.resize(std::min(found.size(), most));
  return found;
}

TaskHit hit_test(const TaskScene& scene, QPointF position, double reach) {
  TaskHit hit;
  std::size_t at = 0;
  for (bool deeper = !scene.boxes.empty(); deeper;) {
    deeper = false;
    const TaskBox& around = scene.boxes[at];
    for (std::uint32_t c = around.child_begin; c < around.child_end; ++c) {
      if (!scene.boxes[c].rect.contains(position)) continue;
      hit.box = int(c);
      hit.header = scene.boxes[c].open && position.y() < scene.boxes[c].rect.top() + kPanelHeader;
      at = c;
      deeper = scene.boxes[c].open;
      break;
    }
  }
  if (scene.boxes.empty() || hit.header || (hit.box >= 0 && !scene.boxes[std::size_t(hit.box)].open)) return hit;
  double best = reach;
  for (std::uint32_t l = scene.boxes[at].edge_begin; l < scene.boxes[at].edge_end; ++l)
    for (std::uint32_t p = scene.point_begin[l]; p + 1 < scene.point_begin[l + 1]; ++p)
      if (const double d = distance_to_line(position, scene.points[p], scene.points[p + 1]); d < best)
        best = d, hit.line = int(l);
  return hit;
}

}  // namespace turnpoint::views
