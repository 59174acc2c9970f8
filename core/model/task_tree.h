// SPDX-License-Identifier: Apache-2.0
// The tree of a TaskHierarchy while it is being made: nodes of paths and runs over leaders. A leader is a task that is
// not folded to another; those folded to it follow it wherever it goes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/model/task_hierarchy.h"

namespace turnpoint {

struct TaskTree {
  struct Child {
    std::uint32_t index = 0;  ///< node or leader
    bool is_node = false;
  };
  struct Node {
    std::string name;
    std::uint32_t parent = kNone;
    TaskHierarchy::Made made = TaskHierarchy::Made::scope;
    std::vector<Child> children;
    std::uint32_t level = kNone, rank = kNone;  ///< of its first leader
    /// Of a run: what it counts and from where to where; empty where its name is no such range.
    std::string noun;
    std::uint64_t first = 0, last = 0;
  };
  std::vector<Node> nodes;  ///< [0] is the root

  std::vector<std::uint32_t> follower_begin;  ///< by task, one more than tasks
  std::vector<TaskIndex> followers;           ///< by leader, then in topological order
  std::vector<bool> spread;                   ///< by task: its followers stand beside it instead of folded to it

  std::span<const TaskIndex> followers_of(TaskIndex task) const {
    return {followers.data() + follower_begin[task], followers.data() + follower_begin[task + 1]};
  }
  bool is_fold(TaskIndex task) const { return !spread[task] && !followers_of(task).empty(); }
};

/// Reads graph and separator of `hierarchy`.
TaskTree make_task_tree(const TaskHierarchy& hierarchy);

/// '/' or '.', where there are no scopes and most tasks have a path in their name; else '\0'.
char path_separator(const TaskGraph& graph);

/// Cuts every level longer than kMaxChildren into runs, in place.
void cut_long_levels(TaskTree& tree, std::span<const std::uint32_t> levels);

}  // namespace turnpoint
