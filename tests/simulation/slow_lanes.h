// SPDX-License-Identifier: Apache-2.0
// A literal transcription of the rules of core/simulation/lanes.h and liveness.h: sets, no queues kept in order, memory
// counted afresh at every instant. Slow on purpose.
#pragma once

#include <QString>
#include <algorithm>
#include <set>
#include <vector>

#include "core/schedule/plan_lowering.h"

namespace turnpoint::test {

struct SlowLanes {
  std::vector<double> start, end;
};

inline SlowLanes slow_lanes(const LaneItems& items) {
  const std::size_t n = items.size();
  constexpr double kNever = -1;
  SlowLanes times{std::vector<double>(n, kNever), std::vector<double>(n, kNever)};
  std::vector<double> ready(n, kNever);
  std::vector<char> ended(n, 0), slow(n, 0);
  std::vector<double> left = items.duration_s, since(n, kNever);
  std::set<double> instants{0.0};
  const auto lanes_of = [&](std::size_t i) {
    std::vector<std::uint32_t> lanes;
    items.each_lane(std::uint32_t(i), [&](std::uint32_t lane) { lanes.push_back(lane); });
    return lanes;
  };
  const auto yields = [&](std::size_t i) { return items.yield(std::uint32_t(i)); };
  const auto runs = [&](std::size_t i) { return items.lane[i] != kNone && times.start[i] != kNever && !ended[i]; };
  const auto aside = [&](std::size_t i) { return items.goes_aside(std::uint32_t(i)); };
  // Rule 6: one of its roles does the other thing, too.
  const auto is_slowed = [&](std::size_t i) {
    for (std::size_t other = 0; other < n; ++other)
      for (const std::uint32_t a : lanes_of(i))
        for (const std::uint32_t b : lanes_of(other))
          if (runs(other) && !aside(i) && !aside(other) && a / 3 == b / 3 && (a % 3 == 0) != (b % 3 == 0)) return true;
    return false;
  };
  while (!instants.empty()) {
    const double now = *instants.begin();
    instants.erase(instants.begin());
    for (bool changed = true; changed;) {
      changed = false;
      // All completions of this instant, and what they make ready, until nothing more happens.
      for (bool more = true; more;) {
        more = false;
        for (std::size_t i = 0; i < n; ++i) {
          if (!ended[i] && times.start[i] != kNever && times.end[i] == now) ended[i] = 1, more = changed = true;
          if (ready[i] != kNever) continue;
          bool all = true;
          for (std::uint32_t k = items.wait_begin[i]; k < items.wait_begin[i + 1]; ++k)
            all = all && ended[items.wait_for[k]];
          if (!all) continue;
          ready[i] = now;
          more = changed = true;
          if (items.lane[i] == kNone) times.start[i] = times.end[i] = now, ended[i] = 1;
        }
      }
      // Then lanes start, by index.
      for (std::uint32_t lane = 0; lane < items.lanes; ++lane) {
        const auto is_free = [&](std::uint32_t which) {
          for (std::size_t i = 0; i < n; ++i)
            for (const std::uint32_t held : lanes_of(i))
              if (held == which && times.start[i] != kNever && !ended[i]) return false;
          return true;
        };
        const auto first_of = [&](std::uint32_t which) {
          std::size_t first = n;
          for (std::size_t i = 0; i < n; ++i) {
            if (ready[i] == kNever || times.start[i] != kNever) continue;
            for (const std::uint32_t held : lanes_of(i))
              if (held == which &&
                  (first == n || std::pair(yields(i), ready[i]) < std::pair(yields(first), ready[first])))
                first = i;
          }
          return first;
        };
        const std::size_t item = first_of(lane);
        if (item == n) continue;
        bool may = true;
        for (const std::uint32_t held : lanes_of(item)) may = may && is_free(held) && first_of(held) == item;
        if (!may) continue;
        times.start[item] = now;
        times.end[item] = now + items.duration_s[item];
        since[item] = now;
        instants.insert(times.end[item]);
        changed = true;
      }
    }
    instants.erase(now);
    for (std::size_t i = 0; i < n; ++i) {
      if (items.overlap_slowdown == 1 || !runs(i) || is_slowed(i) == bool(slow[i])) continue;
      left[i] -= (now - since[i]) / (slow[i] ? items.overlap_slowdown : 1);
      since[i] = now;
      slow[i] = !slow[i];
      times.end[i] = now + std::max(0.0, left[i]) * (slow[i] ? items.overlap_slowdown : 1);
      instants.insert(times.end[i]);
    }
  }
  return times;
}

/// Peak of one device: at every instant at which something begins, everything that is there is added up.
inline std::int64_t slow_peak(const Buffers& buffers, const SlowLanes& times, std::int64_t persistent,
                              std::uint32_t device) {
  const auto until = [&](std::size_t b) {
    double end = times.end[buffers.made_by[b]];
    for (std::size_t k = 0; k < buffers.read_buffer.size(); ++k)
      if (buffers.read_buffer[k] == b) end = std::max(end, times.end[buffers.read_item[k]]);
    return end;
  };
  std::vector<double> from(buffers.size()), to(buffers.size());
  for (std::size_t b = 0; b < buffers.size(); ++b) from[b] = times.start[buffers.made_by[b]], to[b] = until(b);
  std::int64_t peak = persistent;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    std::int64_t there = persistent;
    for (std::size_t other = 0; other < buffers.size(); ++other)
      if (buffers.device[other] == device && from[other] <= from[b] && from[b] < to[other])
        there += buffers.bytes[other];
    peak = std::max(peak, there);
  }
  return peak;
}

inline QString compare_with_slow(const LoweredPlan& lowered, const LaneTimes& times, const MemoryOverTime& memory) {
  const SlowLanes slow = slow_lanes(lowered.items);
  for (std::size_t i = 0; i < lowered.items.size(); ++i)
    if (slow.start[i] != times.start_s[i] || slow.end[i] != times.end_s[i])
      return QString("item %1 runs from %2 to %3, by the rules from %4 to %5")
          .arg(i)
          .arg(times.start_s[i])
          .arg(times.end_s[i])
          .arg(slow.start[i])
          .arg(slow.end[i]);
  const std::int64_t peak = slow_peak(lowered.buffers, slow, lowered.roles[0].persistent_bytes, 0);
  if (peak != memory.peak_bytes) return QString("peak %1, by the rules %2").arg(memory.peak_bytes).arg(peak);
  return {};
}

}  // namespace turnpoint::test
