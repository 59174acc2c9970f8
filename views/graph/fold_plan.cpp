// SPDX-License-Identifier: Apache-2.0
#include "views/graph/fold_plan.h"

#include <QSet>
#include <algorithm>

#include "views/common/format.h"

namespace turnpoint::views {

namespace {

constexpr std::size_t kPleasantBoxes = 150;
constexpr double kLargePart = 0.25;
constexpr qsizetype kMostPaths = 4000;

/// Groups on show that are closed, and the number of boxes.
std::size_t boxes_on_show(const TaskHierarchy& h, const OpenGroups& open,
                          std::vector<std::uint32_t>* closed = nullptr) {
  std::size_t boxes = 1;
  std::vector<std::uint32_t> groups{0};
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const auto& child : h.children_of(groups[i])) {
      ++boxes;
      if (!child.is_group) continue;
      if (open[child.index]) {
        groups.push_back(child.index);
      } else if (closed) {
        closed->push_back(child.index);
      }
    }
  return boxes;
}

/// Layers, or few tasks: a layer of a hundred time steps is a stripe that shrinks all others.
bool shows_something_inside(const TaskHierarchy& h, std::uint32_t group) {
  constexpr std::size_t kFewInside = 40;
  if (h.groups[group].made == TaskHierarchy::Made::fold) return false;
  const auto children = h.children_of(group);
  return children.size() <= kFewInside || std::any_of(children.begin(), children.end(), [&](const auto& child) {
           return child.is_group && h.groups[child.index].made != TaskHierarchy::Made::fold;
         });
}

}  // namespace

OpenGroups folded_outline(const TaskHierarchy& hierarchy) {
  OpenGroups open(hierarchy.groups.size(), false);
  open[0] = true;
  return open;
}

OpenGroups folded_layers(const TaskHierarchy& h) {
  OpenGroups open = folded_outline(h);
  for (;;) {
    std::vector<std::uint32_t> closed;
    std::size_t boxes = boxes_on_show(h, open, &closed);
    std::vector<std::uint32_t> large;
    for (const std::uint32_t g : closed)
      if (h.groups[g].tasks() >= kLargePart * h.groups[0].tasks() && shows_something_inside(h, g)) {
        large.push_back(g);
        boxes += h.children_of(g).size();
      }
    // All of a kind or none, so that like things look alike.
    if (large.empty() || boxes > kPleasantBoxes) return open;
    for (const std::uint32_t g : large) open[g] = true;
  }
}

bool unfold_inside(const TaskHierarchy& h, OpenGroups& open, std::uint32_t group) {
  for (std::uint32_t g = group; g != kNone; g = h.groups[g].parent) open[g] = true;
  std::size_t boxes = boxes_on_show(h, open);
  std::vector<std::uint32_t> groups{group};
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (const auto& child : h.children_of(groups[i])) {
      if (!child.is_group) continue;
      if (!open[child.index]) {
        const std::size_t more = h.children_of(child.index).size();
        if (boxes + more > kMostBoxes) return false;
        boxes += more;
        open[child.index] = true;
      }
      groups.push_back(child.index);
    }
  return true;
}

void unfold_to(const TaskHierarchy& hierarchy, OpenGroups& open, TaskIndex task) {
  for (std::uint32_t g = hierarchy.parent[task]; g != kNone; g = hierarchy.groups[g].parent) open[g] = true;
}

QStringList open_paths(const TaskHierarchy& hierarchy, const OpenGroups& open) {
  QStringList paths;
  for (std::uint32_t g = 1; g < hierarchy.groups.size() && paths.size() < kMostPaths; ++g)
    if (open[g]) paths << to_qt(hierarchy.path(g));
  return paths;
}

OpenGroups open_from_paths(const TaskHierarchy& hierarchy, const QStringList& paths) {
  OpenGroups open = folded_outline(hierarchy);
  const QSet<QString> wanted(paths.begin(), paths.end());
  if (wanted.isEmpty()) return open;
  // Only below open groups: a path is of no use where one around it is closed.
  for (std::uint32_t g = 1; g < hierarchy.groups.size(); ++g)
    if (open[hierarchy.groups[g].parent]) open[g] = wanted.contains(to_qt(hierarchy.path(g)));
  return open;
}

}  // namespace turnpoint::views
