// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/search/pardnn/clusters.h"

namespace turnpoint::pardnn {
namespace {

class Slicer {
 public:
  explicit Slicer(const ScheduleCosts& costs) : costs_(costs), g_(costs.graph()) {
    result_.cluster.assign(g_.task_count(), kNone);
    result_.begin = {0};
    result_.tasks.reserve(g_.task_count());
  }

  Clusters run(const RunContext& context) {
    const std::size_t n = g_.task_count();
    for (std::uint32_t k = 0; k < costs_.devices() && result_.tasks.size() < n; ++k) {
      if (context.cancelled()) return {};
      context.report("slicing: primary clusters", 0.3 * k / costs_.devices());
      primary();
    }
    result_.primaries = std::uint32_t(result_.size());
    if (!secondaries(context)) return {};
    return std::move(result_);
  }

 private:
  bool taken(TaskIndex t) const { return result_.cluster[t] != kNone; }
  void close() { result_.begin.push_back(std::uint32_t(result_.tasks.size())); }
  void take(TaskIndex t) {
    result_.cluster[t] = std::uint32_t(result_.size());
    result_.tasks.push_back(t);
  }

  void primary() {
    level_.assign(g_.task_count(), 0);
    TaskIndex head = kNone;
    for (std::size_t i = g_.task_count(); i-- > 0;) {
      const TaskIndex t = g_.topological[i];
      if (taken(t)) continue;
      double longest = 0;
      for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e)
        if (!taken(g_.out_to[e])) longest = std::max(longest, costs_.edge_s(e) + level_[g_.out_to[e]]);
      level_[t] = longest + costs_.task_s(t);
      if (head == kNone || level_[t] > level_[head] || (level_[t] == level_[head] && t < head)) head = t;
    }
    for (TaskIndex t = head; t != kNone; t = next(t, level_)) take(t);
    close();
  }

  /// The consumer that is left with the longest way to the end.
  TaskIndex next(TaskIndex t, const std::vector<double>& bottom) const {
    TaskIndex best = kNone;
    double longest = -1;
    for (EdgeIndex e = g_.out_begin[t]; e < g_.out_begin[t + 1]; ++e) {
      const TaskIndex to = g_.out_to[e];
      if (taken(to) || costs_.edge_s(e) + bottom[to] <= longest) continue;
      longest = costs_.edge_s(e) + bottom[to];
      best = to;
    }
    return best;
  }
  TaskIndex previous(TaskIndex t, const std::vector<double>& top) const {
    TaskIndex best = kNone;
    double longest = -1;
    for (EdgeIndex i = g_.in_begin[t]; i < g_.in_begin[t + 1]; ++i) {
      const TaskIndex from = g_.in_from[i];
      const double way = top[from] + costs_.task_s(from) + costs_.edge_s(g_.in_edge[i]);
      if (taken(from) || way <= longest) continue;
      longest = way;
      best = from;
    }
    return best;
  }

  bool secondaries(const RunContext& context) {
    context.report("slicing: secondary clusters", 0.3);
    // Tasks that are left are each alone in the eyes of the levels: a number of their own.
    std::vector<std::uint32_t> place(g_.task_count());
    for (std::uint32_t t = 0; t < place.size(); ++t) place[t] = taken(t) ? result_.cluster[t] : result_.primaries + t;
    const auto bottom = placement::bottom_levels(costs_, 1.0, &place), top = placement::top_levels(costs_, 1.0, &place);
    auto& level = result_.weighted_level;
    level.resize(place.size());
    for (std::size_t t = 0; t < level.size(); ++t) level[t] = bottom[t] + top[t];
    std::vector<TaskIndex> path;
    for (const TaskIndex head : placement::order_by_priority(costs_, level)) {
      if (taken(head)) continue;
      if ((head & 0xfff) == 0 && context.cancelled()) return false;
      path.clear();
      if (g_.time_s[head] > 0) {
        // The heaviest task lies anywhere on its path: follow it both ways.
        const auto number = std::uint32_t(result_.size());
        result_.cluster[head] = number;
        for (TaskIndex t = previous(head, top); t != kNone; t = previous(t, top)) {
          path.push_back(t);
          result_.cluster[t] = number;
        }
        std::reverse(path.begin(), path.end());
      }
      for (const TaskIndex t : path) take(t);
      take(head);
      if (g_.time_s[head] > 0)
        for (TaskIndex t = next(head, bottom); t != kNone; t = next(t, bottom)) take(t);
      close();
    }
    return true;
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  std::vector<double> level_;
  Clusters result_;
};

}  // namespace

Clusters slice(const ScheduleCosts& costs, const RunContext& context) { return Slicer(costs).run(context); }

}  // namespace turnpoint::pardnn
