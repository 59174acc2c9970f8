// SPDX-License-Identifier: Apache-2.0
// Which forward task a backward or update task belongs to.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "core/model/task_hierarchy.h"
#include "core/model/task_levels.h"

namespace turnpoint {
namespace {

/// "x" of "x:gradient", "x #2" of "x:gradient #2", "Gelu_3" of "Gelu_3_Grad/GeluGrad_0", "node9" of "node9grad": empty
/// where the name is none of these.
std::string forward_name(std::string_view name) {
  if (const auto colon = name.rfind(':'); colon != std::string_view::npos && colon > 0) {
    const auto batch = name.rfind(" #");
    std::string result(name.substr(0, colon));
    if (batch != std::string_view::npos && batch > colon) result += name.substr(batch);
    return result;
  }
  for (const std::string_view mark : {"_Grad/", "_grad/"})
    if (const auto at = name.find(mark); at != std::string_view::npos && at > 0) return std::string(name.substr(0, at));
  for (const std::string_view end : {" (backward)", "_grad", "grad", "_backward", "_bwd"})
    if (name.size() > end.size() && name.ends_with(end)) return std::string(name.substr(0, name.size() - end.size()));
  return {};
}

class Homes {
 public:
  explicit Homes(const TaskGraph& graph) : graph_(graph), home_(graph.task_count(), kNone) {}

  std::vector<TaskIndex> find() {
    index_forward();
    if (!any_folded_) return std::move(home_);
    level_ = forward_levels(graph_);
    // Producers first, so that a predecessor's home is known.
    for (const TaskIndex task : graph_.topological)
      if (is_folded(graph_.kind[task])) home_[task] = find(task);
    return std::move(home_);
  }

 private:
  const TaskGraph& graph_;
  std::vector<TaskIndex> home_;
  std::vector<std::uint32_t> level_;
  std::unordered_map<std::string_view, TaskIndex> by_name_;
  std::vector<bool> forward_scope_;
  bool any_folded_ = false;

  void index_forward() {
    const auto& kind = graph_.kind;
    any_folded_ = std::any_of(kind.begin(), kind.end(), is_folded);
    if (!any_folded_) return;
    forward_scope_.assign(graph_.scopes.size(), false);
    by_name_.reserve(graph_.task_count());
    for (TaskIndex t = 0; t < graph_.task_count(); ++t) {
      if (is_folded(graph_.kind[t])) continue;
      forward_scope_[graph_.scope[t]] = graph_.scope[t] != 0;
      by_name_.try_emplace(graph_.names[t], t);
    }
  }

  TaskIndex find(TaskIndex task) const {
    if (const std::string name = forward_name(graph_.names[task]); !name.empty())
      if (const auto known = by_name_.find(name); known != by_name_.end()) return known->second;
    // Of the forward tasks that it reads the latest is the one whose gradient it makes; the others are its inputs.
    const bool bound = forward_scope_[graph_.scope[task]];
    const auto later = [&](TaskIndex a, TaskIndex b) { return b == kNone || level_[a] > level_[b]; };
    TaskIndex best = kNone, inherited = kNone;
    for (const TaskIndex from : graph_.predecessors(task)) {
      const bool folded = is_folded(graph_.kind[from]);
      const TaskIndex forward = folded ? home_[from] : from;
      if (forward == kNone || (bound && graph_.scope[forward] != graph_.scope[task])) continue;
      TaskIndex& slot = folded ? inherited : best;
      if (later(forward, slot)) slot = forward;
    }
    return best != kNone ? best : inherited;
  }
};

}  // namespace

std::vector<std::uint32_t> forward_levels(const TaskGraph& graph) {
  std::vector<std::uint32_t> level(graph.task_count(), 0);
  std::uint32_t last = 0;
  for (const TaskIndex t : graph.topological) {
    if (is_folded(graph.kind[t])) continue;
    for (const TaskIndex from : graph.predecessors(t))
      if (!is_folded(graph.kind[from])) level[t] = std::max(level[t], level[from] + 1);
    last = std::max(last, level[t]);
  }
  for (std::size_t i = graph.task_count(); i-- > 0;) {
    const TaskIndex t = graph.topological[i];
    if (is_folded(graph.kind[t])) {
      level[t] = last + 1;
      continue;
    }
    std::uint32_t nearest = kNone;
    for (const TaskIndex to : graph.successors(t))
      if (!is_folded(graph.kind[to])) nearest = std::min(nearest, level[to]);
    if (nearest != kNone) level[t] = nearest - 1;
  }
  return level;
}

std::vector<TaskIndex> forward_homes(const TaskGraph& graph) { return Homes(graph).find(); }

}  // namespace turnpoint
