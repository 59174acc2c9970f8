// SPDX-License-Identifier: Apache-2.0
// A placement that is changed a little, measured, and kept or put back: what annealing and random search work on.
//
// It is a device per unit (what has to stay together, core/search/placement/units.h) and a rank per task, which decides
// what a device runs first of all that is ready (core/simulation/ranked.h).
#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/search/placement/list_schedule.h"
#include "core/search/placement/met.h"
#include "core/search/placement/placement_method.h"
#include "core/search/placement/random.h"
#include "core/search/placement/units.h"
#include "core/simulation/ranked.h"

namespace turnpoint::annealing {

/// Compared as placement::Verdict is: what fits before what does not, then less missing memory, then less time.
struct Score {
  std::int64_t missing_bytes = std::numeric_limits<std::int64_t>::max();  ///< summed over devices
  double objective_s = std::numeric_limits<double>::infinity();
  bool better_than(const Score& other) const {
    return std::make_pair(missing_bytes, objective_s) < std::make_pair(other.missing_bytes, other.objective_s);
  }
};

/// Not thread-safe. Costs and request outlive it.
class Walk {
 public:
  /// At least one task. `met` may be null.
  Walk(const placement::ScheduleCosts& costs, const placement::PlacementRequest& request, placement::Met* met);

  std::uint32_t units() const { return std::uint32_t(members_.size()); }
  std::uint32_t device_of(std::uint32_t unit) const { return device_[unit]; }

  /// Begins at a placement, a unit being where its first task is; ranks are those of its order where it has one and
  /// these do better than bottom levels. Returns what that is worth, as measure() does; at most three measurements.
  double begin_at(const Placement& placement);
  /// Begins with every unit on a device drawn at random, without a measurement.
  void scatter(placement::Random& random);
  /// How many calls of measure() are expected: of few the more go to layers, of which there are fewer than units.
  void expect(double calls);
  /// Draws a change and makes it. False: none was found, or there is none.
  bool propose(placement::Random& random);
  /// What the present state is worth, in seconds: the objective, and what lacks memory as time on top. Infinite as soon
  /// as it is certain that it is more than `limit`.
  double measure(double limit);
  /// The change stays; after a measure() that was not cut short.
  void accept();
  void put_back();

  const Score& best() const { return best_; }
  const Placement& best_placement() const { return best_placement_; }  ///< with order, for the makespan
  std::uint64_t measurements() const { return measurements_; }

 private:
  void set_device(std::uint32_t unit, std::uint32_t device);
  void set_rank(TaskIndex task, float rank);
  void go(std::uint32_t unit, std::uint32_t device);
  void go_with_neighbours(placement::Random& random, std::uint32_t unit, std::uint32_t device);
  void rerank(TaskIndex task, float rank);
  void rank_above(placement::Random& random, TaskIndex task, TaskIndex other);
  void go_with_family(placement::Random& random);
  void find_families();
  std::uint32_t neighbour(placement::Random& random, std::uint32_t unit) const;
  std::uint32_t elsewhere(placement::Random& random, std::uint32_t unit) const;
  void change_path(placement::Random& random);
  void change_sending(placement::Random& random, std::size_t at);
  void change_ranks(placement::Random& random);
  void change_devices(placement::Random& random);
  void look_at_path();
  double shortage_s(bool persistent_only, std::int64_t& missing) const;
  void remember(const Score& score);

  const TaskGraph& graph_;
  const placement::PlacementRequest& request_;
  placement::Met* met_;
  placement::Units units_;
  std::vector<std::vector<TaskIndex>> members_;  // by unit
  std::vector<float> bottom_, rank_;             // by task; bottom levels are fractions of the longest
  std::vector<std::uint32_t> device_;            // by unit
  std::vector<double> limit_bytes_;
  double family_rate_ = 0;
  std::vector<std::vector<std::uint32_t>> families_;   // of units
  std::vector<std::vector<std::uint32_t>> family_of_;  // by unit
  double longest_s_ = 0;                               // what missing all of a device's memory costs
  RankedSimulator simulator_;

  std::vector<std::pair<std::uint32_t, std::uint32_t>> moved_;  // unit, the device it came from
  std::vector<std::pair<TaskIndex, float>> reranked_;           // task, the rank it had
  // Of the state that was accepted last.
  std::vector<RankedSimulator::Step> path_;
  std::vector<double> start_s_, ready_s_;
  std::vector<TaskIndex> ran_before_;

  Score best_;
  Placement best_placement_;
  std::uint64_t measurements_ = 0;
};

}  // namespace turnpoint::annealing
