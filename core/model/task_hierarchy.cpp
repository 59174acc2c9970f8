// SPDX-License-Identifier: Apache-2.0
#include "core/model/task_hierarchy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/task_tree.h"

namespace turnpoint {
namespace {

/// Puts a TaskTree into the flat form: groups by breadth, so that parents precede their children and the children of a
/// group lie side by side; then tasks by depth, so that those of a group are one run.
class Flattener {
 public:
  Flattener(TaskHierarchy& to, TaskTree tree) : to_(to), tree_(std::move(tree)) {}

  void run() {
    add_groups();
    count_tasks();
    place_tasks();
    sum_up();
    add_edges();
  }

 private:
  TaskHierarchy& to_;
  TaskTree tree_;
  std::vector<std::uint32_t> node_of_;     // by group: node of the tree; kNone: a fold
  std::vector<TaskIndex> leader_of_fold_;  // by group

  const TaskGraph& graph() const { return *to_.graph; }

  void add_group(std::uint32_t parent, std::uint32_t ordinal, std::uint32_t node, TaskIndex leader) {
    TaskHierarchy::Group group;
    group.parent = parent, group.ordinal = ordinal;
    group.depth = parent == kNone ? 0 : to_.groups[parent].depth + 1;
    group.made = node == kNone ? TaskHierarchy::Made::fold : tree_.nodes[node].made;
    to_.names.add(node != kNone ? tree_.nodes[node].name : to_.label(leader));
    to_.groups.push_back(group);
    node_of_.push_back(node);
    leader_of_fold_.push_back(leader);
  }

  void add_groups() {
    add_group(kNone, 0, 0, kNone);
    for (std::uint32_t g = 0; g < to_.groups.size(); ++g) {
      to_.groups[g].child_begin = std::uint32_t(to_.children.size());
      std::uint32_t ordinal = 0;
      const auto add_task = [&](TaskIndex t) {
        to_.children.push_back({t, false});
        ++ordinal;
      };
      if (node_of_[g] == kNone) {
        const TaskIndex leader = leader_of_fold_[g];
        add_task(leader);
        for (const TaskIndex t : tree_.followers_of(leader)) add_task(t);
      } else {
        for (const TaskTree::Child& child : tree_.nodes[node_of_[g]].children) {
          const bool fold = !child.is_node && tree_.is_fold(child.index);
          if (!child.is_node && !fold) {
            add_task(child.index);
            continue;
          }
          to_.children.push_back({std::uint32_t(to_.groups.size()), true});
          add_group(g, ordinal++, fold ? kNone : child.index, fold ? child.index : kNone);
        }
      }
      to_.groups[g].child_end = std::uint32_t(to_.children.size());
    }
  }

  void count_tasks() {
    for (std::size_t g = to_.groups.size(); g-- > 0;) {
      auto& group = to_.groups[g];
      for (const auto& child : to_.children_of(std::uint32_t(g)))
        group.task_end += child.is_group ? to_.groups[child.index].tasks() : 1;
    }
  }

  void place_tasks() {
    const std::size_t tasks = graph().task_count();
    to_.order.resize(tasks);
    to_.position.resize(tasks);
    to_.parent.resize(tasks);
    to_.ordinal.resize(tasks);
    for (std::uint32_t g = 0; g < to_.groups.size(); ++g) {
      std::uint32_t cursor = to_.groups[g].task_begin, ordinal = 0;
      for (const auto& child : to_.children_of(g)) {
        if (child.is_group) {
          auto& inner = to_.groups[child.index];
          inner.task_end += cursor, inner.task_begin = cursor;
          cursor = inner.task_end;
        } else {
          to_.order[cursor] = child.index;
          to_.position[child.index] = cursor++;
          to_.parent[child.index] = g;
          to_.ordinal[child.index] = ordinal;
        }
        ++ordinal;
      }
    }
  }

  void sum_up() {
    for (std::size_t g = to_.groups.size(); g-- > 0;) {
      auto& group = to_.groups[g];
      for (const auto& child : to_.children_of(std::uint32_t(g))) {
        if (child.is_group) {
          const auto& inner = to_.groups[child.index];
          for (std::size_t k = 0; k < 4; ++k) {
            group.tasks_of_kind[k] += inner.tasks_of_kind[k];
            group.time_of_kind[k] += inner.time_of_kind[k];
          }
          group.output_bytes += inner.output_bytes, group.persistent_bytes += inner.persistent_bytes;
        } else {
          const auto k = std::size_t(graph().kind[child.index]);
          ++group.tasks_of_kind[k];
          group.time_of_kind[k] += graph().time_s[child.index];
          group.output_bytes += graph().output_bytes[child.index];
          group.persistent_bytes += graph().persistent_bytes[child.index];
        }
      }
    }
  }

  struct Crossing {
    std::uint64_t key;  // group, then the two ordinals
    EdgeIndex edge;
    bool back;
  };

  /// The lowest group that holds both ends says between which children the edge runs.
  Crossing crossing(EdgeIndex edge, TaskIndex from, TaskIndex to) const {
    std::uint32_t a = to_.parent[from], b = to_.parent[to], at = to_.ordinal[from], bt = to_.ordinal[to];
    while (a != b) {
      std::uint32_t &group = to_.groups[a].depth >= to_.groups[b].depth ? a : b, &ordinal = &group == &a ? at : bt;
      ordinal = to_.groups[group].ordinal;
      group = to_.groups[group].parent;
    }
    const bool back = at > bt;
    if (back) std::swap(at, bt);
    return {(std::uint64_t(a) << 32) | (at << 16) | bt, edge, back};
  }

  void add_edges() {
    static_assert(TaskHierarchy::kMaxChildren < 0x10000);
    std::vector<Crossing> crossings;
    crossings.reserve(graph().edge_count());
    for (TaskIndex t = 0; t < graph().task_count(); ++t)
      for (EdgeIndex e = graph().out_begin[t]; e < graph().out_begin[t + 1]; ++e)
        crossings.push_back(crossing(e, t, graph().out_to[e]));
    std::sort(crossings.begin(), crossings.end(),
              [](const Crossing& a, const Crossing& b) { return a.key != b.key ? a.key < b.key : a.edge < b.edge; });
    to_.edge_of.resize(graph().edge_count());
    std::uint64_t last = ~std::uint64_t(0);
    std::uint32_t group = 0;
    for (const Crossing& c : crossings) {
      if (c.key != last) {
        for (const auto owner = std::uint32_t(c.key >> 32); group < owner; ++group) end_edges(group);
        TaskHierarchy::Edge edge;
        edge.from = std::uint32_t(c.key >> 16) & 0xffff, edge.to = std::uint32_t(c.key) & 0xffff;
        to_.edges.push_back(edge);
        last = c.key;
      }
      TaskHierarchy::Edge& edge = to_.edges.back();
      ++(c.back ? edge.back : edge.there);
      (c.back ? edge.bytes_back : edge.bytes_there) += graph().out_bytes[c.edge];
      if (!graph().out_seconds.empty()) edge.seconds += graph().out_seconds[c.edge];
      to_.edge_of[c.edge] = std::uint32_t(to_.edges.size() - 1);
    }
    for (; group < to_.groups.size(); ++group) end_edges(group);
  }

  void end_edges(std::uint32_t group) {
    to_.groups[group].edge_end = std::uint32_t(to_.edges.size());
    if (group + 1 < to_.groups.size()) to_.groups[group + 1].edge_begin = std::uint32_t(to_.edges.size());
  }
};

}  // namespace

std::string TaskHierarchy::path(std::uint32_t group) const {
  std::vector<std::string_view> parts;
  for (; group != kNone && group != 0; group = groups[group].parent) parts.push_back(names[group]);
  std::reverse(parts.begin(), parts.end());
  return fmt::format("{}", fmt::join(parts, "/"));
}

std::string TaskHierarchy::label(TaskIndex task) const {
  std::string_view name = graph->names[task];
  const std::string_view scope = graph->scopes[graph->scope[task]];
  if (!scope.empty() && name.size() > scope.size() + 1 && name.starts_with(scope) &&
      std::string_view("/. :").find(name[scope.size()]) != std::string_view::npos)
    return std::string(name.substr(scope.size() + 1));
  if (separator != '\0')
    if (const auto at = name.rfind(separator); at != std::string_view::npos && at + 1 < name.size())
      name.remove_prefix(at + 1);
  return std::string(name);
}

TaskHierarchyPtr build_task_hierarchy(TaskGraphPtr graph) {
  auto hierarchy = std::make_shared<TaskHierarchy>();
  hierarchy->graph = std::move(graph);
  hierarchy->separator = path_separator(*hierarchy->graph);
  Flattener(*hierarchy, make_task_tree(*hierarchy)).run();
  return hierarchy;
}

std::vector<double> time_by_device(const TaskHierarchy& hierarchy, std::uint32_t group,
                                   std::span<const std::uint32_t> device_of, std::size_t slots) {
  std::vector<double> sums(slots, 0);
  const bool timed = hierarchy.groups[group].time_s() > 0;
  for (const TaskIndex t : hierarchy.tasks_of(group)) {
    const std::size_t slot = std::min<std::size_t>(device_of[t], slots - 1);
    sums[slot] += timed ? hierarchy.graph->time_s[t] : 1;
  }
  return sums;
}

std::vector<double> cut_weights(const TaskHierarchy& hierarchy, std::span<const std::uint32_t> device_of) {
  const TaskGraph& graph = *hierarchy.graph;
  std::vector<double> cut(hierarchy.edges.size(), 0);
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    for (EdgeIndex e = graph.out_begin[t]; e < graph.out_begin[t + 1]; ++e)
      if (device_of[t] != device_of[graph.out_to[e]])
        cut[hierarchy.edge_of[e]] += graph.out_seconds.empty() ? double(graph.out_bytes[e]) : graph.out_seconds[e];
  return cut;
}

}  // namespace turnpoint
