// SPDX-License-Identifier: Apache-2.0
#include "core/model/task_tree.h"

#include <algorithm>
#include <unordered_map>

#include "core/model/task_levels.h"

namespace turnpoint {
namespace {

class TreeMaker {
 public:
  explicit TreeMaker(const TaskHierarchy& hierarchy)
      : hierarchy_(hierarchy), graph_(*hierarchy.graph), levels_(forward_levels(graph_)) {}

  TaskTree make() {
    rank_.resize(graph_.task_count());
    for (std::uint32_t i = 0; i < graph_.topological.size(); ++i) rank_[graph_.topological[i]] = i;
    find_followers();
    tree_.nodes.emplace_back();
    tree_.nodes[0].name = graph_.name;
    for (TaskIndex t = 0; t < graph_.task_count(); ++t)
      if (home_[t] == kNone) add_leader(t);
    link_nodes();
    for (auto& node : tree_.nodes) sort_children(node);
    merge_single_children();
    cut_long_levels(tree_, levels_);
    return std::move(tree_);
  }

 private:
  const TaskHierarchy& hierarchy_;
  const TaskGraph& graph_;
  const std::vector<std::uint32_t> levels_;
  std::vector<std::uint32_t> rank_;
  std::vector<TaskIndex> home_;
  TaskTree tree_;
  std::unordered_map<std::string, std::uint32_t> node_of_path_;
  std::vector<std::uint32_t> node_of_scope_;
  std::string last_folder_;
  std::uint32_t last_node_ = 0;

  void find_followers() {
    home_ = forward_homes(graph_);
    const std::size_t tasks = graph_.task_count();
    tree_.spread.assign(tasks, false);
    tree_.follower_begin.assign(tasks + 1, 0);
    for (const TaskIndex home : home_)
      if (home != kNone) ++tree_.follower_begin[home + 1];
    for (std::size_t t = 0; t < tasks; ++t) tree_.follower_begin[t + 1] += tree_.follower_begin[t];
    std::vector<std::uint32_t> next(tree_.follower_begin.begin(), tree_.follower_begin.end() - 1);
    tree_.followers.resize(tree_.follower_begin.back());
    for (const TaskIndex t : graph_.topological)
      if (home_[t] != kNone) tree_.followers[next[home_[t]]++] = t;
  }

  void add_leader(TaskIndex task) {
    std::uint32_t node = folder_of(task);
    if (tree_.followers_of(task).size() >= TaskHierarchy::kMaxChildren) node = add_spread(task, node);
    tree_.nodes[node].children.push_back({task, false});
    note_first(node, levels_[task], rank_[task]);
  }

  /// A task with hundreds of others folded to it becomes a level of its own, which can be cut like any other.
  std::uint32_t add_spread(TaskIndex task, std::uint32_t above) {
    const std::uint32_t node = add_node(hierarchy_.label(task), above);
    tree_.spread[task] = true;
    for (const TaskIndex t : tree_.followers_of(task)) tree_.nodes[node].children.push_back({t, false});
    return node;
  }

  std::uint32_t add_node(std::string name, std::uint32_t parent) {
    TaskTree::Node node;
    node.name = std::move(name);
    node.parent = parent;
    tree_.nodes.push_back(std::move(node));
    return std::uint32_t(tree_.nodes.size() - 1);
  }

  void note_first(std::uint32_t node, std::uint32_t level, std::uint32_t rank) {
    auto& n = tree_.nodes[node];
    if (std::pair(level, rank) < std::pair(n.level, n.rank)) n.level = level, n.rank = rank;
  }

  std::uint32_t folder_of(TaskIndex task) {
    if (hierarchy_.separator != '\0') {
      const std::string_view name = graph_.names[task];
      const auto end = name.rfind(hierarchy_.separator);
      return folder(end == std::string_view::npos ? std::string_view() : name.substr(0, end), hierarchy_.separator);
    }
    if (node_of_scope_.empty()) node_of_scope_.assign(graph_.scopes.size(), kNone);
    std::uint32_t& node = node_of_scope_[graph_.scope[task]];
    if (node == kNone) node = folder(graph_.scopes[graph_.scope[task]], '/');
    return node;
  }

  std::uint32_t folder(std::string_view path, char separator) {
    if (path == last_folder_) return last_node_;
    std::uint32_t node = 0;
    std::size_t depth = 0;
    for (std::size_t begin = 0; begin < path.size() && depth < TaskHierarchy::kMaxDepth;) {
      const std::size_t end = std::min(path.find(separator, begin), path.size());
      if (end > begin) {
        const auto [at, fresh] = node_of_path_.try_emplace(std::string(path.substr(0, end)), std::uint32_t(0));
        if (fresh) at->second = add_node(std::string(path.substr(begin, end - begin)), node);
        node = at->second;
        ++depth;
      }
      begin = end + 1;
    }
    last_folder_ = path;
    return last_node_ = node;
  }

  void link_nodes() {
    for (std::size_t n = tree_.nodes.size(); n-- > 1;) {
      const auto& node = tree_.nodes[n];
      tree_.nodes[node.parent].children.push_back({std::uint32_t(n), true});
      note_first(node.parent, node.level, node.rank);
    }
  }

  void sort_children(TaskTree::Node& node) {
    const auto key = [&](const TaskTree::Child& child) {
      return child.is_node ? std::pair(tree_.nodes[child.index].level, tree_.nodes[child.index].rank)
                           : std::pair(levels_[child.index], rank_[child.index]);
    };
    std::sort(node.children.begin(), node.children.end(), [&](const TaskTree::Child& a, const TaskTree::Child& b) {
      const auto ka = key(a), kb = key(b);
      return ka != kb ? ka < kb : std::pair(a.is_node, a.index) < std::pair(b.is_node, b.index);
    });
  }

  void merge_single_children() {
    // Children were added after their parents.
    for (std::size_t n = tree_.nodes.size(); n-- > 0;) {
      for (TaskTree::Child& child : tree_.nodes[n].children) {
        if (!child.is_node) continue;
        const auto& inner = tree_.nodes[child.index];
        if (inner.children.size() != 1) continue;
        const TaskTree::Child only = inner.children.front();
        if (only.is_node) tree_.nodes[only.index].name = inner.name + '/' + tree_.nodes[only.index].name;
        child = only;
      }
    }
    auto& root = tree_.nodes[0].children;
    if (root.size() == 1 && root.front().is_node) {
      // The name of the one scope that holds all says nothing.
      const std::vector<TaskTree::Child> inner = std::move(tree_.nodes[root.front().index].children);
      root = inner;
    }
  }
};

}  // namespace

char path_separator(const TaskGraph& graph) {
  if (graph.scopes.size() > 1) return '\0';
  for (const char separator : {'/', '.'}) {
    std::size_t leaders = 0, with = 0;
    for (TaskIndex t = 0; t < graph.task_count(); ++t) {
      if (is_folded(graph.kind[t])) continue;
      const std::string_view name = graph.names[t];
      const auto at = name.find(separator, 1);
      ++leaders;
      with += at != std::string_view::npos && at + 1 < name.size();
    }
    if (with * 2 > leaders) return separator;
  }
  return '\0';
}

TaskTree make_task_tree(const TaskHierarchy& hierarchy) { return TreeMaker(hierarchy).make(); }

}  // namespace turnpoint
