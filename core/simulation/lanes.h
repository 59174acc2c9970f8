// SPDX-License-Identifier: Apache-2.0
// The clock of sharding plans: items that wait for each other and occupy lanes, one item at a time on each. A device
// (or a role that many devices play alike) has a lane for computing and two for communication, inside nodes and
// between: lane 3 r is what role r computes on, lanes 3 r + 1 and 3 r + 2 are what it communicates on.
//
// Rules, in the manner of resources/manual/simulator.md, so that anyone can recompute them:
//  1. An item is ready when all items it waits for have ended; items that wait for nothing are ready at 0.
//  2. A ready item enters the queue of its lane, or of each of its lanes. A queue is ordered by whether its items yield
//  to
//     others, then by the instant at which they became ready, then by their index (the order in which they were
//     issued).
//  3. An item starts when it is the first of the queue of each of its lanes and these lanes are free. It occupies them
//     until its end = start + duration.
//  4. At one instant all completions are handled before any lane starts anything; lanes then start by their index.
//     Instants are equal only if the doubles are. An item of zero length ends in the same instant, in a further round.
//  5. An item without a lane takes no time and waits for no one but its inputs: it starts and ends where it is ready.
//  6. While a role computes and communicates at once, both make 1 / overlap_slowdown of their progress: the kernels
//     share its processors and its memory. An item on lanes of several roles is as slow while any of them computes.
//     What goes aside, moved without the device's processors, neither slows anything nor is slowed.
// Queues have one order for all lanes, so items on several lanes cannot block each other for good. While anything is
// left, some lane is busy: with any lanes, the last end is never later than the sum of all durations, nor later than
// that times overlap_slowdown where it is more than 1.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/model/task_graph.h"

namespace turnpoint {

/// Items in the order in which they are issued. What an item waits for has a lower index; so there is no cycle.
struct LaneItems {
  std::vector<double> duration_s;                   ///< 0 without a lane
  std::vector<std::uint32_t> lane;                  ///< kNone: none
  std::vector<std::uint32_t> wait_begin, wait_for;  ///< item i: wait_for[wait_begin[i]] ... ; one more entry than items
  std::vector<std::uint32_t> other_begin, other;    ///< further lanes, kept likewise; of an item that has one
  std::vector<char> yields;                         ///< 1: those of the lane that do not go first; empty: none does
  std::vector<char> aside;                          ///< 1: moved without the device's processors; empty: none is
  std::uint32_t lanes = 0;
  double overlap_slowdown = 1;  ///< at least 1

  static constexpr std::uint32_t kLanesOfRole = 3;

  bool yield(std::uint32_t item) const { return item < yields.size() && yields[item] != 0; }
  bool goes_aside(std::uint32_t item) const { return item < aside.size() && aside[item] != 0; }
  std::size_t size() const { return duration_s.size(); }
  std::span<const std::uint32_t> others(std::uint32_t item) const {
    return std::span(other).subspan(other_begin[item], other_begin[item + 1] - other_begin[item]);
  }
  /// Its lane and the further ones.
  template <class Visit>
  void each_lane(std::uint32_t item, Visit visit) const {
    if (lane[item] == kNone) return;
    visit(lane[item]);
    for (const std::uint32_t one : others(item)) visit(one);
  }
  /// Begins an item, whose waits and further lanes are appended next; finish() follows the last one.
  std::uint32_t begin(std::uint32_t on, double seconds, bool yield = false, bool go_aside = false) {
    wait_begin.push_back(static_cast<std::uint32_t>(wait_for.size()));
    other_begin.push_back(static_cast<std::uint32_t>(other.size()));
    duration_s.push_back(on == kNone ? 0 : seconds);
    lane.push_back(on);
    yields.push_back(yield);
    aside.push_back(go_aside);
    return static_cast<std::uint32_t>(size() - 1);
  }
  void finish() {
    wait_begin.push_back(static_cast<std::uint32_t>(wait_for.size()));
    other_begin.push_back(static_cast<std::uint32_t>(other.size()));
  }
};

struct LaneTimes {
  double makespan_s = 0;
  std::vector<double> start_s, end_s;  ///< by item; what lies between may be more than its duration (rule 6)
  /// What each lane ran, in that order: lane l's items are run[l][0], run[l][1], ...
  std::vector<std::vector<std::uint32_t>> run;
};

/// Linear in items and waits, times the number of lanes.
LaneTimes run_lanes(const LaneItems& items);

/// Items on a path that decides the makespan, first to last, each starting in the instant in which the one before ends;
/// those without a lane are left out. Where an input and the lane came free together, the input (the lowest) is named.
std::vector<std::uint32_t> critical_items(const LaneItems& items, const LaneTimes& times);

}  // namespace turnpoint
