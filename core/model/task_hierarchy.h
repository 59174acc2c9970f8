// SPDX-License-Identifier: Apache-2.0
// A tree of layers over the tasks of a TaskGraph, for drawing graphs of any size level by level.
//
// Every backward and update task is folded to the forward task it belongs to: the one that its name says ("x" of
// "x:gradient"), else the latest forward task that it reads from, else that of a predecessor; a forward task with what
// is folded to it is a group. Layers come from scopes, else from the paths in the names ("a/b/c", "a.b.c"); without
// either the tasks are cut into bands of depth. By construction every group but the root has 2..kMaxChildren children:
// chains of single children are merged, a group of one task becomes that task, longer levels are cut into runs of equal
// size. Children are sorted so that forward edges lead to later children. No recursion; time is linear in tasks, edges
// and path components up to sorting; paths deeper than kMaxDepth are cut there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/model/task_graph.h"

namespace turnpoint {

struct TaskHierarchy {
  static constexpr std::size_t kMaxChildren = 300;
  static constexpr std::size_t kMaxDepth = 24;

  /// A group (index into groups) or a task.
  struct Child {
    std::uint32_t index = 0;
    bool is_group = false;
    friend bool operator==(const Child&, const Child&) = default;
  };
  enum class Made : std::uint8_t {
    scope,  ///< of a path
    fold,   ///< a forward task with its backward and update tasks
    run,    ///< cut out of a longer level
  };
  struct Group {
    std::uint32_t parent = kNone, ordinal = 0, depth = 0;  ///< ordinal: among the parent's children
    std::uint32_t child_begin = 0, child_end = 0;          ///< in children
    std::uint32_t task_begin = 0, task_end = 0;            ///< in order: all tasks inside at any depth
    std::uint32_t edge_begin = 0, edge_end = 0;            ///< in edges: those between its children
    Made made = Made::scope;
    std::array<std::uint32_t, 4> tasks_of_kind{};  ///< by TaskKind; inside at any depth
    std::array<double, 4> time_of_kind{};          ///< likewise, seconds on a device of speed 1
    std::int64_t output_bytes = 0, persistent_bytes = 0;

    std::uint32_t tasks() const { return task_end - task_begin; }
    double time_s() const { return time_of_kind[0] + time_of_kind[1] + time_of_kind[2] + time_of_kind[3]; }
  };
  /// All that two children of one group send each other. `from` < `to`, ordinals of the children.
  struct Edge {
    std::uint32_t from = 0, to = 0;
    std::uint32_t there = 0, back = 0;  ///< edges of the graph from -> to and to -> from
    std::int64_t bytes_there = 0, bytes_back = 0;
    double seconds = 0;  ///< where the graph's edges state times instead of bytes
    std::int64_t bytes() const { return bytes_there + bytes_back; }
  };

  TaskGraphPtr graph;
  std::vector<Group> groups;  ///< [0] is the root; parents precede their children
  NamePool names;             ///< of groups, without the path of the group around
  char separator = '\0';      ///< between the parts of a task's name where the paths come from names
  std::vector<Child> children;
  std::vector<TaskIndex> order;         ///< all tasks, those of a group in a run
  std::vector<std::uint32_t> position;  ///< by task: its place in order
  std::vector<std::uint32_t> parent;    ///< by task: the group that holds it directly
  std::vector<std::uint32_t> ordinal;   ///< by task: among that group's children
  std::vector<Edge> edges;              ///< by group, then (from, to)
  std::vector<std::uint32_t> edge_of;   ///< by edge of the graph: the one edge here that it is part of

  std::span<const Child> children_of(std::uint32_t group) const {
    return {children.data() + groups[group].child_begin, children.data() + groups[group].child_end};
  }
  std::span<const TaskIndex> tasks_of(std::uint32_t group) const {
    return {order.data() + groups[group].task_begin, order.data() + groups[group].task_end};
  }
  std::span<const Edge> edges_of(std::uint32_t group) const {
    return {edges.data() + groups[group].edge_begin, edges.data() + groups[group].edge_end};
  }
  bool contains(std::uint32_t group, TaskIndex task) const {
    return position[task] >= groups[group].task_begin && position[task] < groups[group].task_end;
  }
  std::string path(std::uint32_t group) const;  ///< names from below the root, joined by '/'
  /// Name of a task without the path of the group around it.
  std::string label(TaskIndex task) const;
};
using TaskHierarchyPtr = std::shared_ptr<const TaskHierarchy>;

TaskHierarchyPtr build_task_hierarchy(TaskGraphPtr graph);

/// By task: the forward task that a backward or update task is folded to; kNone for all others and where none is found.
std::vector<TaskIndex> forward_homes(const TaskGraph& graph);

/// Seconds of a group's tasks by device. Devices from `slots` - 1 on share the last entry, and so do tasks that
/// `device_of` places nowhere. Where all times are zero each task counts as one second.
std::vector<double> time_by_device(const TaskHierarchy& hierarchy, std::uint32_t group,
                                   std::span<const std::uint32_t> device_of, std::size_t slots);

/// What of each hierarchy edge crosses devices: bytes, or seconds where the graph states times.
std::vector<double> cut_weights(const TaskHierarchy& hierarchy, std::span<const std::uint32_t> device_of);

}  // namespace turnpoint
