// SPDX-License-Identifier: Apache-2.0
// What is achieved, what is impossible, and what lies between: the plans found so far, the Lagrangian lower bound over
// them, thresholds for pruning, and the gap.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/frontier/lagrange.h"
#include "core/frontier/lists.h"
#include "core/frontier/pareto.h"

namespace turnpoint::frontier::detail {

/// The plans found so far, memory strictly rising and time strictly falling; and what is known to be achieved
/// elsewhere, on which a plan must improve to be of interest.
class Achieved {
 public:
  /// Adds plans and keeps the frontier of all; of equal ones the earliest stays.
  void add(std::vector<Point>&& plans);
  const std::vector<Point>& points() const { return points_; }
  std::vector<Point>& points() { return points_; }
  bool empty() const { return points_.empty(); }
  /// Of no interest is, too, what is slower than `slowest`.
  void know(CostList elsewhere, double slowest = kInfinity);
  bool knows() const { return !known_.empty(); }
  bool is_limited() const { return slowest_ < kInfinity; }  ///< slower plans are of no interest
  /// The costs of the plans and of what is known, reduced.
  CostList costs() const;
  /// On what a plan must improve: the same, and below their memory the slowest time of interest.
  CostList staircase() const;
  /// True if some plan, or what is known, needs at most this memory and at most this time.
  bool covers(std::int64_t memory, double time) const;
  /// True if what is known reaches all that lies on the straight line between these costs, the first of less memory.
  bool covers_chord(const CostPoint& low, const CostPoint& high) const;
  /// Indices of the lower convex hull, from least memory to least time.
  std::vector<std::size_t> hull() const;
  /// Memory and time of the neighbours on the hull between which this much memory lies; none where it holds the fastest
  /// or not even the least.
  std::optional<std::pair<CostPoint, CostPoint>> chord_at(std::int64_t memory) const;

 private:
  std::vector<Point> points_;
  CostList known_;  // as if a plan of no memory took the slowest time
  CostList elsewhere_;
  double slowest_ = kInfinity;
};

/// Between which corners of the hull this much memory lies: the number of the second one; none outside.
std::optional<std::size_t> corner_above(const std::vector<Point>& points, const std::vector<std::size_t>& hull,
                                        std::int64_t memory);

/// The plan of a choice, and its cost summed in the order of evaluate().
Point make_point(const Graph& graph, const Choice& choice);
/// The same for several: choices[leaf table][i] makes points[i].
void make_points(const Graph& graph, std::span<const Choice> choices, std::span<Point> points);

/// A line below which no plan lies: weight_memory * m + weight_time * t >= bound.
struct HalfPlane {
  double weight_memory = 0, weight_time = 0, bound = 0;
};
void append_half_planes(const LaneBlock& block, std::vector<HalfPlane>& planes);
/// The same as lines over memory, but for the least memory of all.
std::vector<BoundLine> bound_lines(const std::vector<HalfPlane>& planes);
/// No plan within so much memory is faster.
double time_bound(const std::vector<HalfPlane>& planes, std::int64_t memory);

/// Without what needs more than the limit (0: none), but for the least where all of it does.
CostList within(CostList staircase, std::int64_t limit);

struct Certificate {
  CostList lower_bound;
  double gap = 0;
};
/// Staircase below all plans, and below what is known, and its distance from the achieved one; `limit` 0: unlimited.
/// `floor` as in Needed.
Certificate certify(const std::vector<HalfPlane>& planes, const CostList& achieved, std::int64_t limit,
                    const CostList& floor = {});

/// Where plans can still improve on the achieved staircase. Every corner of it belongs to the lane that bounds it best;
/// a region is what lies below the corners of one lane, seen from all lanes of its block. Rounding margins included.
struct Needed {
  std::vector<Slack> slack;  ///< per block
  /// What exact lists in these regions prove: no plan that they do not find needs less memory and less time than any of
  /// these pairs (memory rising, INT64_MAX for "any").
  CostList floor;
  double largest = 0;  ///< of all lanes for their own corners; -infinity if no lane is needed
  struct Corner {
    double memory = 0, time = 0;
    std::size_t block = 0, lane = 0;
    bool needed = false;
  };
  std::vector<Corner> corners;  ///< of the staircase, memory rising
};

/// By how much a plan must improve on what is achieved to be of interest.
struct Improvement {
  double of_time = 0;    ///< share of the time, for the same memory
  double of_ranges = 0;  ///< share of the plans' ranges, of memory's and of time's
};

/// Only plans that improve by more than `least` are of interest. Farther than `distance` from the bound of a lane
/// nothing is looked for.
Needed slacks(std::span<const LaneBlock> blocks, const Achieved& achieved, std::int64_t limit, const Improvement& least,
              double distance = kInfinity);

/// Where plans of less than this memory and time can lie, as seen from the lane that bounds them best; per block.
/// Nothing: there are none.
std::optional<std::vector<Slack>> slack_below(std::span<const LaneBlock> blocks, double memory, double time);

/// After lists in the regions of `needed`, all of them and made with no distance: below none of these points of the
/// root does a sum lie that the lists have. Raises `floor` by what that proves, together with what is achieved: lists
/// may leave out what is no better, which certify() allows for.
void append_floor(const Needed& needed, const ListTable& lowest, CostList& floor);

}  // namespace turnpoint::frontier::detail
