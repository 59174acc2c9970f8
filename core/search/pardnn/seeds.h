// SPDX-License-Identifier: Apache-2.0
// The placements that `pardnn` begins with: list schedules, ParDNN's clusters, all of the printed algorithm, layers by
// hand and contiguous stages.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/search/pardnn/refinement.h"

namespace turnpoint::pardnn {

/// What a device runs of a list schedule. As ready is faster where transfers wait for one another, and takes more
/// memory: what is ready early makes tensors early.
enum class Orders : std::uint8_t {
  listed,    ///< what its list says
  as_ready,  ///< where that is faster, what is ready and furthest from the end (ready_order.h)
};

/// Above so many tasks there are fewer seeds, and only the fastest is simulated as ready.
inline constexpr std::size_t kMany = 100000;
/// Whether all of the printed algorithm is a seed and answers on fewer devices are looked at: both simulate some ten
/// times more than all else.
bool is_small(const TaskGraph& graph, std::uint32_t devices);

struct Seeded {
  Placement placement;
  std::size_t moved = 0;  ///< tasks that a memory stage of its own put elsewhere
};

/// The ways to a first placement. Each is computed on its own, so that threads change nothing. Costs and request
/// outlive it.
class Seeds {
 public:
  /// `beat`: see MemoryOptions.
  Seeds(const ScheduleCosts& costs, const placement::PlacementRequest& request, std::int64_t beat);

  std::size_t size() const { return seeds_.size(); }
  const std::string& name(std::size_t i) const { return seeds_[i].name; }
  Seeded make(std::size_t i, const RunContext& context) const { return seeds_[i].make(context); }

  /// By task, once all are made; empty where slicing would have taken too long.
  const std::vector<std::uint32_t>& cluster() const { return cluster_; }
  /// Our own order for given devices. Empty if cancelled.
  Placement ordered(const std::vector<std::uint32_t>& device, const RunContext& context) const;

 private:
  struct Seed {
    std::string name;
    std::function<Seeded(const RunContext&)> make;
  };
  void add(std::string name, std::function<Seeded(const RunContext&)> make) {
    seeds_.push_back({std::move(name), std::move(make)});
  }
  void add_list(std::string name, double affinity, bool sources_follow = true);
  void add_lists(bool many);
  Placement list(double affinity, const std::vector<std::uint32_t>* fixed, bool with_room, const RunContext& context,
                 bool sources_follow = true) const;
  Placement mapped(const RunContext& context) const;

  const ScheduleCosts& costs_;
  const TaskGraph& graph_;
  const placement::PlacementRequest& request_;
  std::vector<TaskIndex> order_;
  std::vector<std::int64_t> room_;
  bool limited_ = false;
  std::vector<Seed> seeds_;
  mutable std::vector<std::uint32_t> cluster_;  // of the one seed that makes them
};

/// Runs and measures all seeds; the first error, or all that came out: where it is stopped, those that were measured
/// until then, the others without a placement. Error: cancelled, where none was.
Expected<std::vector<Judged>> judge_seeds(const Seeds& seeds, const ScheduleCosts& costs,
                                          const placement::PlacementRequest& request, Orders orders,
                                          const RunContext& context);
/// Those that were measured, what fits and is fast first.
std::vector<const Judged*> by_preference(const std::vector<Judged>& seeds);

}  // namespace turnpoint::pardnn
