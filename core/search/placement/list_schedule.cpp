// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/list_schedule.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>

namespace turnpoint::placement {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
/// How often a pass looks whether it was cancelled, in tasks.
constexpr std::size_t kCancelEvery = 1 << 14;

bool links_are_uniform(const TaskGraph& graph) {
  return !graph.out_seconds.empty() || (graph.links.bandwidths.empty() && graph.links.latencies.empty());
}

double mean_transfer(const TaskGraph& graph, EdgeIndex edge, std::uint32_t devices) {
  double sum = 0;
  for (std::uint32_t a = 0; a < devices; ++a)
    for (std::uint32_t b = 0; b < devices; ++b)
      if (a != b) sum += graph.transfer_s(edge, a, b);
  return devices > 1 ? sum / (double(devices) * (devices - 1)) : 0;
}

/// Bits of a non-negative double order as the number does.
std::uint64_t falling_key(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return ~bits;
}

}  // namespace

ScheduleCosts::ScheduleCosts(const TaskGraph& graph, std::uint32_t devices)
    : graph_(&graph), devices_(devices), uniform_(links_are_uniform(graph)) {
  edge_s_.resize(graph.edge_count());
  // With many devices a sample of the pairs gives the mean well enough for a priority.
  const std::uint32_t sampled = std::min<std::uint32_t>(devices, 8);
  for (EdgeIndex e = 0; e < edge_s_.size(); ++e)
    edge_s_[e] = uniform_ ? graph.transfer_s(e, 0, 0) : mean_transfer(graph, e, sampled);
  double slowness = 0;
  for (std::uint32_t d = 0; d < devices; ++d) slowness += 1 / graph.speed_of(d);
  slowness /= devices;
  task_s_.resize(graph.task_count());
  place_.resize(graph.task_count());
  for (std::size_t t = 0; t < task_s_.size(); ++t) total_task_s_ += task_s_[t] = graph.time_s[t] * slowness;
  for (std::uint32_t i = 0; i < place_.size(); ++i) place_[graph.topological[i]] = i;
}

std::vector<double> bottom_levels(const ScheduleCosts& costs, double transfer_weight,
                                  const std::vector<std::uint32_t>* device) {
  const TaskGraph& g = costs.graph();
  std::vector<double> level(g.task_count());
  for (std::size_t i = level.size(); i-- > 0;) {
    const TaskIndex t = g.topological[i];
    double longest = 0;
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const TaskIndex to = g.out_to[e];
      const bool free = device && (*device)[t] == (*device)[to];
      longest = std::max(longest, level[to] + (free ? 0 : transfer_weight * costs.edge_s(e)));
    }
    level[t] = longest + costs.task_s(t);
  }
  return level;
}

std::vector<double> top_levels(const ScheduleCosts& costs, double transfer_weight,
                               const std::vector<std::uint32_t>* device) {
  const TaskGraph& g = costs.graph();
  std::vector<double> level(g.task_count(), 0.0);
  for (const TaskIndex t : g.topological) {
    const double end = level[t] + costs.task_s(t);
    for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
      const TaskIndex to = g.out_to[e];
      const bool free = device && (*device)[t] == (*device)[to];
      level[to] = std::max(level[to], end + (free ? 0 : transfer_weight * costs.edge_s(e)));
    }
  }
  return level;
}

std::vector<TaskIndex> order_by_priority(const ScheduleCosts& costs, const std::vector<double>& priority) {
  struct Key {
    std::uint64_t priority;
    std::uint32_t place;
  };
  std::vector<Key> keys(priority.size());
  const auto& topological = costs.graph().topological;
  for (std::uint32_t i = 0; i < keys.size(); ++i) keys[i] = {falling_key(priority[topological[i]] + 0.0), i};
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    return a.priority != b.priority ? a.priority < b.priority : a.place < b.place;
  });
  std::vector<TaskIndex> order(keys.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = topological[keys[i].place];
  return order;
}

namespace {

/// Idle intervals of one device by rising time, of which only the latest are remembered: what is ready now seldom fits
/// into what was idle long ago.
class Gaps {
 public:
  /// When a task of `duration` that is ready at `ready` can start in a gap; kNever if in none.
  double find(double ready, double duration) const {
    const double end = ready + duration;
    auto gap = std::lower_bound(gaps_.begin() + std::ptrdiff_t(first_), gaps_.end(), end,
                                [](const Gap& g, double value) { return g.end < value; });
    for (; gap != gaps_.end(); ++gap) {
      const double start = std::max(ready, gap->begin);
      if (start + duration <= gap->end) return start;
    }
    return kNever;
  }
  void take(double start, double end, double shortest) {
    auto gap = std::lower_bound(gaps_.begin() + std::ptrdiff_t(first_), gaps_.end(), end,
                                [](const Gap& g, double value) { return g.end < value; });
    if (gap == gaps_.end()) return;
    const Gap before{gap->begin, start}, after{end, gap->end};
    const bool keep_before = before.end - before.begin >= shortest, keep_after = after.end - after.begin >= shortest;
    if (keep_before) *gap = before;
    if (keep_before && keep_after)
      gaps_.insert(gap + 1, after);
    else if (keep_after)
      *gap = after;
    else if (!keep_before)
      gaps_.erase(gap);
  }
  void add(double begin, double end) {
    if (gaps_.size() - first_ == kRemembered) ++first_;
    if (first_ >= 4 * kRemembered) {
      gaps_.erase(gaps_.begin(), gaps_.begin() + std::ptrdiff_t(first_));
      first_ = 0;
    }
    gaps_.push_back({begin, end});
  }

 private:
  static constexpr std::size_t kRemembered = 64;
  struct Gap {
    double begin, end;
  };
  std::vector<Gap> gaps_;
  std::size_t first_ = 0;  // those before are forgotten
};

class ListPass {
 public:
  ListPass(const ScheduleCosts& costs, const ListOptions& options)
      : costs_(costs), g_(costs.graph()), options_(options) {
    const std::size_t n = g_.task_count();
    const std::uint32_t k = costs.devices();
    schedule_.placement.devices = k;
    schedule_.placement.device.assign(n, 0);
    schedule_.start_s.assign(n, 0);
    schedule_.end_s.assign(n, 0);
    clock_.assign(k, 0);
    sender_.assign(k, 0);
    early_sender_.assign(k, 0);
    if (options.sources_follow) waits_.assign(n, 0);
    local_.assign(k, 0);
    cut_.assign(k, 0);
    gaps_.resize(options.insertion ? k : 0);
    group_device_.assign(g_.groups.size(), kNone);
    contention_ = g_.links.contention == TaskLinks::Contention::sender;
    remember_sent_ = k <= 64;
    if (remember_sent_) sent_.assign(n, 0);
    if (options.room) room_ = *options.room;
    // Gaps that not even the shortest task fits into are not worth remembering.
    shortest_ = kNever;
    for (std::size_t t = 0; options.insertion && t < n; ++t)
      if (g_.time_s[t] > 0) shortest_ = std::min(shortest_, costs.task_s(TaskIndex(t)));
  }

  void place(TaskIndex task) {
    if (is_held(task) && !g_.successors(task).empty()) {
      waits_[task] = 1;
      return;
    }
    std::uint32_t d = options_.fixed ? (*options_.fixed)[task] : kNone;
    const std::uint32_t group = g_.colocate[task];
    if (d == kNone && group != kNone) d = group_device_[group];
    if (d == kNone) d = choose(task);
    if (group != kNone && group_device_[group] == kNone) group_device_[group] = d;
    for (std::size_t i = 0; !waits_.empty() && i < g_.predecessors(task).size(); ++i)
      if (const TaskIndex from = g_.predecessors(task)[i]; waits(from)) hold(from, d);
    commit(task, d);
  }

  Schedule take() {
    order_by_start(costs_, schedule_.start_s, schedule_.end_s, schedule_.placement);
    return std::move(schedule_);
  }

 private:
  /// What ListOptions::sources_follow speaks of.
  bool is_held(TaskIndex task) const {
    return options_.sources_follow && g_.time_s[task] == 0 && g_.in_begin[task] == g_.in_begin[task + 1];
  }
  void take_room(TaskIndex task, std::uint32_t d) {
    if (!room_.empty()) room_[d] -= g_.persistent_bytes[task];
  }
  bool waits(TaskIndex task) const { return !waits_.empty() && waits_[task] != 0; }

  /// A source whose first reader goes to device d.
  void hold(TaskIndex task, std::uint32_t d) {
    const std::uint32_t group = g_.colocate[task];
    if (options_.fixed && (*options_.fixed)[task] != kNone) d = (*options_.fixed)[task];
    if (group != kNone && group_device_[group] != kNone) d = group_device_[group];
    if (group != kNone) group_device_[group] = d;
    waits_[task] = 0;
    schedule_.placement.device[task] = d;
    take_room(task, d);
  }

  bool was_sent(TaskIndex from, std::uint32_t d) const { return remember_sent_ && (sent_[from] >> d & 1) != 0; }

  /// When the tensor of edge `e` from `from` is on device d, another than its own.
  double arrival(TaskIndex from, EdgeIndex e, std::uint32_t d) const {
    const std::uint32_t own = schedule_.placement.device[from];
    const double transfer = costs_.edge_s(e, own, d);
    double begin = schedule_.end_s[from];
    if (contention_ && !was_sent(from, d)) begin = std::max(begin, is_held(from) ? early_sender_[own] : sender_[own]);
    return begin + transfer;
  }

  double ready_at(TaskIndex task, std::uint32_t d) const {
    double ready = 0;
    for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i) {
      const TaskIndex from = g_.in_from[i];
      if (waits(from)) continue;
      const bool here = schedule_.placement.device[from] == d;
      ready = std::max(ready, here ? schedule_.end_s[from] : arrival(from, g_.in_edge[i], d));
    }
    return ready;
  }

  double start_at(std::uint32_t d, double ready, double duration) const {
    const double after = std::max(ready, clock_[d]);
    return options_.insertion ? std::min(after, gaps_[d].find(ready, duration)) : after;
  }

  /// Where links are alike, the inputs' arrivals are summed up by the two latest devices, so that a task costs its
  /// inputs plus the devices, not their product.
  std::uint32_t choose(TaskIndex task) {
    const std::uint32_t k = costs_.devices();
    double latest = 0, second = 0, all_cut = 0;
    std::uint32_t latest_device = kNone;
    const bool quick = costs_.uniform_links();
    if (quick) {
      for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i) {
        const TaskIndex from = g_.in_from[i];
        if (waits(from)) continue;
        const std::uint32_t own = schedule_.placement.device[from];
        const double transfer = costs_.edge_s(g_.in_edge[i]), end = schedule_.end_s[from];
        const double sender = is_held(from) ? early_sender_[own] : sender_[own];
        const double there = (contention_ ? std::max(end, sender) : end) + transfer;
        local_[own] = std::max(local_[own], end);
        all_cut += transfer;
        if (options_.affinity > 0) {
          cut_[own] += transfer;
          if (remember_sent_)
            for (std::uint64_t mask = sent_[from]; mask != 0; mask &= mask - 1) cut_[__builtin_ctzll(mask)] += transfer;
        }
        if (own == latest_device) {
          latest = std::max(latest, there);
        } else if (there > latest) {
          second = latest;
          latest = there;
          latest_device = own;
        } else {
          second = std::max(second, there);
        }
      }
    }
    best_ = kNever;
    choice_ = kNone;
    if (!quick) {
      for (std::uint32_t d = 0; d < k; ++d)
        consider(task, d, ready_at(task, d), options_.affinity > 0 ? options_.affinity * cut_at(task, d) : 0);
    } else {
      // Devices that hold inputs first: where they end a task before its inputs could be anywhere else, no other is
      // asked.
      for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i) {
        const std::uint32_t d = schedule_.placement.device[g_.in_from[i]];
        if (local_[d] < 0 || waits(g_.in_from[i])) continue;
        const double ready = std::max(local_[d], d == latest_device ? second : latest);
        consider(task, d, ready, options_.affinity * (all_cut - cut_[d]));
        local_[d] = -1;  // asked
      }
      for (std::uint32_t d = 0; d < k; ++d) {
        if (local_[d] < 0) continue;
        // With equal speeds every further device can at best start when the inputs arrive.
        if (g_.devices.empty() && options_.affinity == 0 && latest + costs_.task_s(task, 0) >= best_) break;
        consider(task, d, latest, options_.affinity * (all_cut - cut_[d]));
      }
      for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i)
        local_[schedule_.placement.device[g_.in_from[i]]] = 0;
      if (options_.affinity > 0) std::fill(cut_.begin(), cut_.end(), 0.0);
    }
    if (choice_ != kNone) return choice_;
    return std::uint32_t(std::max_element(room_.begin(), room_.end()) - room_.begin());
  }

  void consider(TaskIndex task, std::uint32_t d, double ready, double penalty) {
    if (!room_.empty() && room_[d] < need(task)) return;
    const double duration = costs_.task_s(task, d);
    if (ready + duration + penalty >= best_) return;
    const double score = start_at(d, ready, duration) + duration + penalty;
    if (score >= best_) return;
    best_ = score;
    choice_ = d;
  }

  /// With the sources that wait for the task. A group's first task brings the whole group's parameters along.
  std::int64_t need(TaskIndex task) {
    std::int64_t bytes = g_.persistent_bytes[task] > 0 ? need_of(task) : 0;
    for (std::size_t i = 0; !waits_.empty() && i < g_.predecessors(task).size(); ++i)
      if (const TaskIndex from = g_.predecessors(task)[i]; waits(from)) bytes += need_of(from);
    return bytes > 0 ? bytes : std::numeric_limits<std::int64_t>::min();
  }
  std::int64_t need_of(TaskIndex task) {
    const std::uint32_t group = g_.colocate[task];
    if (group == kNone) return g_.persistent_bytes[task];
    if (group_bytes_.empty()) {
      group_bytes_.assign(g_.groups.size(), 0);
      for (std::size_t t = 0; t < g_.task_count(); ++t)
        if (g_.colocate[t] != kNone) group_bytes_[g_.colocate[t]] += g_.persistent_bytes[t];
    }
    return group_bytes_[group];
  }

  double cut_at(TaskIndex task, std::uint32_t d) const {
    double sum = 0;
    for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i) {
      const TaskIndex from = g_.in_from[i];
      const std::uint32_t own = schedule_.placement.device[from];
      if (own != d && !was_sent(from, d) && !waits(from)) sum += costs_.edge_s(g_.in_edge[i], own, d);
    }
    return sum;
  }

  void commit(TaskIndex task, std::uint32_t d) {
    double ready = 0;
    for (EdgeIndex i = g_.in_begin[task]; i < g_.in_begin[task + 1]; ++i) {
      const TaskIndex from = g_.in_from[i];
      const std::uint32_t own = schedule_.placement.device[from];
      if (own == d) {
        ready = std::max(ready, schedule_.end_s[from]);
        continue;
      }
      const double there = arrival(from, g_.in_edge[i], d);
      ready = std::max(ready, there);
      if (contention_ && !was_sent(from, d)) {
        double& sender = is_held(from) ? early_sender_[own] : sender_[own];
        sender = std::max(sender, there);
      }
      if (remember_sent_) sent_[from] |= std::uint64_t(1) << d;
    }
    const double duration = costs_.task_s(task, d), start = start_at(d, ready, duration), end = start + duration;
    schedule_.placement.device[task] = d;
    schedule_.start_s[task] = start;
    schedule_.end_s[task] = end;
    schedule_.makespan_s = std::max(schedule_.makespan_s, end);
    if (options_.insertion && start < clock_[d]) {
      gaps_[d].take(start, end, shortest_);
    } else {
      if (options_.insertion && start - clock_[d] >= shortest_) gaps_[d].add(clock_[d], start);
      clock_[d] = end;
    }
    take_room(task, d);
  }

  const ScheduleCosts& costs_;
  const TaskGraph& g_;
  const ListOptions& options_;
  Schedule schedule_;
  std::vector<double> clock_, sender_, local_, cut_;
  std::vector<double> early_sender_;  // what each device sends of sources
  std::vector<char> waits_;           // by task: a source that no reader has been placed of
  std::vector<Gaps> gaps_;
  std::vector<std::uint32_t> group_device_;
  std::vector<std::uint64_t> sent_;  // by task: devices that have its tensor
  std::vector<std::int64_t> room_, group_bytes_;
  double best_ = 0, shortest_ = 0;
  std::uint32_t choice_ = kNone;
  bool contention_ = false, remember_sent_ = false;
};

}  // namespace

Schedule list_schedule(const ScheduleCosts& costs, const std::vector<TaskIndex>& order, const ListOptions& options,
                       const RunContext& context) {
  ListPass pass(costs, options);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i % kCancelEvery == 0 && context.cancelled()) return {};
    pass.place(order[i]);
  }
  return pass.take();
}

Schedule ready_schedule(const ScheduleCosts& costs, const std::vector<std::uint32_t>& device,
                        const std::vector<double>& priority, const RunContext& context) {
  const TaskGraph& g = costs.graph();
  const std::size_t n = g.task_count();
  const std::uint32_t k = costs.devices();
  struct Ready {
    double priority;
    std::uint32_t place;
    TaskIndex task;
    bool operator<(const Ready& other) const {
      return priority != other.priority ? priority < other.priority : place > other.place;
    }
  };
  struct Event {
    double time;
    std::uint32_t task;  // arrives; or n + d: device d becomes idle
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : task > other.task; }
  };
  Schedule schedule;
  schedule.placement.devices = k;
  schedule.placement.device = device;
  schedule.placement.order.resize(k);
  schedule.start_s.assign(n, 0);
  schedule.end_s.assign(n, 0);
  std::vector<double> ready_s(n, 0);
  std::vector<std::uint32_t> waiting(n);
  std::vector<std::priority_queue<Ready>> ready(k);
  std::priority_queue<Event> events;
  std::vector<char> busy(k, 0);
  for (TaskIndex t = 0; t < n; ++t)
    if ((waiting[t] = g.in_begin[t + 1] - g.in_begin[t]) == 0) events.push({0, t});
  std::vector<std::uint32_t> touched;
  std::size_t handled = 0;
  while (!events.empty()) {
    if (handled++ % kCancelEvery == 0 && context.cancelled()) return {};
    const double now = events.top().time;
    touched.clear();
    while (!events.empty() && events.top().time == now) {
      const std::uint32_t item = events.top().task;
      events.pop();
      if (item >= n) {
        busy[item - n] = 0;
        touched.push_back(std::uint32_t(item - n));
      } else {
        ready[device[item]].push({priority[item], costs.topological_place(item), item});
        touched.push_back(device[item]);
      }
    }
    std::sort(touched.begin(), touched.end());
    for (const std::uint32_t d : touched) {
      if (busy[d] || ready[d].empty()) continue;
      const TaskIndex t = ready[d].top().task;
      ready[d].pop();
      busy[d] = 1;
      const double end = now + costs.task_s(t, d);
      schedule.placement.order[d].push_back(t);
      schedule.start_s[t] = now;
      schedule.end_s[t] = end;
      schedule.makespan_s = std::max(schedule.makespan_s, end);
      events.push({end, std::uint32_t(n + d)});
      for (EdgeIndex e = g.out_begin[t]; e < g.out_begin[t + 1]; ++e) {
        const TaskIndex to = g.out_to[e];
        ready_s[to] = std::max(ready_s[to], device[to] == d ? end : end + costs.edge_s(e, d, device[to]));
        if (--waiting[to] == 0) events.push({ready_s[to], to});
      }
    }
  }
  return schedule;
}

void order_by_start(const ScheduleCosts& costs, const std::vector<double>& start_s, const std::vector<double>& end_s,
                    Placement& placement) {
  const auto& topological = costs.graph().topological;
  placement.order.assign(placement.devices, {});
  struct Key {
    double start, end;
    std::uint32_t place;
    bool operator<(const Key& other) const {
      if (start != other.start) return start < other.start;
      return end != other.end ? end < other.end : place < other.place;
    }
  };
  std::vector<std::vector<Key>> keys(placement.devices);
  for (std::uint32_t i = 0; i < topological.size(); ++i) {
    const TaskIndex t = topological[i];
    keys[placement.device[t]].push_back({start_s[t], end_s[t], i});
  }
  for (std::uint32_t d = 0; d < placement.devices; ++d) {
    // Most lists come sorted or nearly so.
    if (!std::is_sorted(keys[d].begin(), keys[d].end())) std::sort(keys[d].begin(), keys[d].end());
    placement.order[d].reserve(keys[d].size());
    for (const Key& key : keys[d]) placement.order[d].push_back(topological[key.place]);
  }
}

}  // namespace turnpoint::placement
