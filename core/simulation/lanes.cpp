// SPDX-License-Identifier: Apache-2.0
#include "core/simulation/lanes.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace turnpoint {
namespace {

/// A queue by (yields, instant ready, index). Items arrive by rising instant, so of those that yield alike only the
/// tail of one instant needs sorting.
struct ReadyQueue {
  std::vector<std::uint32_t> items;
  std::size_t head = 0;
  bool empty() const { return head == items.size(); }
  std::uint32_t first() const { return items[head]; }
};

class Run {
 public:
  explicit Run(const LaneItems& items)
      : items_(items),
        queues_(items.lanes),
        running_(items.lanes, kNone),
        busy_until_(items.lanes, kFree),
        waiting_(items.size()),
        ready_s_(items.size()),
        row_(items.size() + 1, 0) {
    times_.start_s.resize(items.size());
    times_.end_s.resize(items.size());
    times_.run.resize(items.lanes);
    if (items.overlap_slowdown > 1) {
      left_s_ = items.duration_s;
      since_s_.resize(items.size());
      slowed_.resize(items.size());
    }
    turn_waits();
  }

  LaneTimes run() {
    for (std::uint32_t i = 0; i < items_.size(); ++i)
      if (waiting_[i] == 0) make_ready(i, 0);
    drain(0);
    start_idle(0);
    set_paces(0);
    for (;;) {
      double now = kFree;
      for (const double end : busy_until_) now = std::min(now, end);
      if (now == kFree) break;
      for (std::uint32_t lane = 0; lane < items_.lanes; ++lane) {
        if (busy_until_[lane] != now) continue;
        const std::uint32_t item = running_[lane];
        free_lanes(item);
        complete(item, now);
      }
      drain(now);
      start_idle(now);
      set_paces(now);
      times_.makespan_s = now;
    }
    return std::move(times_);
  }

 private:
  static constexpr double kFree = std::numeric_limits<double>::infinity();

  /// Successor rows from the rows of what items wait for.
  void turn_waits() {
    for (std::uint32_t i = 0; i < items_.size(); ++i) {
      waiting_[i] = items_.wait_begin[i + 1] - items_.wait_begin[i];
      for (std::uint32_t k = items_.wait_begin[i]; k < items_.wait_begin[i + 1]; ++k) {
        assert(items_.wait_for[k] < i);
        ++row_[items_.wait_for[k] + 1];
      }
    }
    for (std::size_t i = 0; i < items_.size(); ++i) row_[i + 1] += row_[i];
    successors_.resize(items_.wait_for.size());
    std::vector<std::uint32_t> at(row_.begin(), row_.end() - 1);
    for (std::uint32_t i = 0; i < items_.size(); ++i)
      for (std::uint32_t k = items_.wait_begin[i]; k < items_.wait_begin[i + 1]; ++k)
        successors_[at[items_.wait_for[k]]++] = i;
  }

  void make_ready(std::uint32_t item, double now) {
    ready_s_[item] = now;
    if (items_.lane[item] == kNone) {
      times_.start_s[item] = now;
      without_lane_.push_back(item);
      return;
    }
    items_.each_lane(item, [&](std::uint32_t lane) { enter(lane, item); });
  }

  void enter(std::uint32_t lane, std::uint32_t item) {
    ReadyQueue& queue = queues_[lane];
    queue.items.push_back(item);
    for (std::size_t at = queue.items.size() - 1; at > queue.head; --at) {
      const std::uint32_t before = queue.items[at - 1];
      const bool same = items_.yield(before) == items_.yield(item);
      if (same ? ready_s_[before] < ready_s_[item] || before < item : items_.yield(item)) break;
      std::swap(queue.items[at - 1], queue.items[at]);
    }
  }

  void complete(std::uint32_t item, double now) {
    times_.end_s[item] = now;
    for (std::uint32_t k = row_[item]; k < row_[item + 1]; ++k)
      if (--waiting_[successors_[k]] == 0) make_ready(successors_[k], now);
  }

  void drain(double now) {
    while (!without_lane_.empty()) {
      const std::uint32_t item = without_lane_.back();
      without_lane_.pop_back();
      complete(item, now);
    }
  }

  void free_lanes(std::uint32_t item) {
    items_.each_lane(item, [&](std::uint32_t lane) { running_[lane] = kNone, busy_until_[lane] = kFree; });
  }

  void start_idle(double now) {
    for (std::uint32_t lane = 0; lane < items_.lanes; ++lane) {
      if (running_[lane] != kNone || queues_[lane].empty()) continue;
      const std::uint32_t item = queues_[lane].first();
      bool may = true;
      items_.each_lane(
          item, [&](std::uint32_t held) { may = may && running_[held] == kNone && queues_[held].first() == item; });
      if (!may) continue;
      times_.start_s[item] = now;
      items_.each_lane(item, [&](std::uint32_t held) {
        ++queues_[held].head;
        running_[held] = item;
        busy_until_[held] = now + items_.duration_s[item];
        times_.run[held].push_back(item);
      });
      if (!since_s_.empty()) since_s_[item] = now;
    }
  }

  bool uses_the_device(std::uint32_t lane) const {
    return lane < items_.lanes && running_[lane] != kNone && !items_.goes_aside(running_[lane]);
  }

  bool shares_a_device(std::uint32_t item) const {
    if (items_.goes_aside(item)) return false;
    bool found = false;
    items_.each_lane(item, [&](std::uint32_t lane) {
      const std::uint32_t computing = lane / LaneItems::kLanesOfRole * LaneItems::kLanesOfRole;
      found = found || (lane == computing ? uses_the_device(computing + 1) || uses_the_device(computing + 2)
                                          : uses_the_device(computing));
    });
    return found;
  }

  // Rule 6: where what an item runs beside has changed, so does its end.
  void set_paces(double now) {
    if (left_s_.empty()) return;
    const auto seconds_per_second = [&](bool slow) { return slow ? items_.overlap_slowdown : 1.0; };
    for (std::uint32_t lane = 0; lane < items_.lanes; ++lane) {
      const std::uint32_t item = running_[lane];
      if (item == kNone || items_.lane[item] != lane) continue;
      const bool slow = shares_a_device(item);
      if (slow == (slowed_[item] != 0)) continue;
      left_s_[item] -= (now - since_s_[item]) / seconds_per_second(!slow);
      since_s_[item] = now;
      slowed_[item] = slow;
      const double end = now + std::max(0.0, left_s_[item]) * seconds_per_second(slow);
      items_.each_lane(item, [&](std::uint32_t held) { busy_until_[held] = end; });
    }
  }

  const LaneItems& items_;
  LaneTimes times_;
  std::vector<ReadyQueue> queues_;
  std::vector<std::uint32_t> running_;
  std::vector<double> busy_until_;
  // Of rule 6, by item: what was left of its duration at an instant, and whether it has been slowed since; empty where
  // nothing slows.
  std::vector<double> left_s_, since_s_;
  std::vector<char> slowed_;
  std::vector<std::uint32_t> waiting_;
  std::vector<double> ready_s_;
  std::vector<std::uint32_t> row_, successors_;
  std::vector<std::uint32_t> without_lane_;
};

}  // namespace

LaneTimes run_lanes(const LaneItems& items) {
  if (items.size() == 0) return {0, {}, {}, std::vector<std::vector<std::uint32_t>>(items.lanes)};
  return Run(items).run();
}

std::vector<std::uint32_t> critical_items(const LaneItems& items, const LaneTimes& times) {
  std::vector<std::uint32_t> path;
  std::vector<std::uint32_t> before(items.size() + items.other.size(), kNone);  // on its lane; on further ones
  const auto on_further = [&](std::uint32_t item, std::size_t k) { return items.size() + items.other_begin[item] + k; };
  std::uint32_t at = kNone;
  for (std::uint32_t lane = 0; lane < items.lanes; ++lane) {
    std::uint32_t last = kNone;
    for (const std::uint32_t item : times.run[lane]) {
      const auto further = items.others(item);
      const auto found = std::find(further.begin(), further.end(), lane);
      before[items.lane[item] == lane ? item : on_further(item, std::size_t(found - further.begin()))] = last;
      last = item;
    }
    if (last != kNone && (at == kNone || times.end_s[last] > times.end_s[at])) at = last;
  }
  while (at != kNone) {
    if (items.lane[at] != kNone) path.push_back(at);
    const double start = times.start_s[at];
    std::uint32_t next = kNone;
    for (std::uint32_t k = items.wait_begin[at]; k < items.wait_begin[at + 1]; ++k)
      if (times.end_s[items.wait_for[k]] == start) next = std::min(next, items.wait_for[k]);
    const auto follow = [&](std::uint32_t held) {
      if (next == kNone && held != kNone && times.end_s[held] == start) next = held;
    };
    follow(before[at]);
    for (std::size_t k = 0; k < items.others(at).size(); ++k) follow(before[on_further(at, k)]);
    at = next;
  }
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace turnpoint
