// SPDX-License-Identifier: Apache-2.0
// Lagrangian bounds: for sixteen slopes at a time (the lanes of one block), the least weighted cost
//   weight_memory * memory + weight_time * time
// inside every entry of every table, and of the best completion outside of it. They give a lower bound on the whole
// frontier, the plans on its convex hull, and for every table entry the region in which a partial point can still lead
// to something better than what is already achieved (exact pruning, anchors: "bounds").
//
// Values are floats relative to the best entry of their table (the offsets are doubles), so precision is highest where
// it matters: near the optimum. Rounding is covered by a margin added to the thresholds.
#pragma once

#include <array>
#include <limits>
#include <span>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/dag.h"
#include "core/frontier/dispatch.h"

namespace turnpoint::frontier::detail {

inline constexpr int kLanes = 16;
using Lanes = std::array<double, kLanes>;

/// Where plans are still of use, as a set of regions: a plan lies in region g if for every lane l its weighted cost
/// exceeds the bound of l by less than [g][l]. A region of -infinity is empty.
using Slack = std::array<Lanes, kLanes>;
inline constexpr double kNoLimit = 1e29;
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Bounds of one table for one block. A partial point (m, t) of an entry is worth keeping only if for some region g of
/// the entry's mask and all lanes weight_memory * m + weight_time * t - offset + outside < slack[g][lane].
struct TableBounds {
  static constexpr std::uint32_t kDead = ~std::uint32_t(0);
  std::vector<std::uint32_t> row_of;  ///< entry -> row, kDead where no region keeps anything
  std::vector<std::uint16_t> masks;   ///< per row: regions that keep something
  std::vector<float> outside;         ///< rows of kLanes
};

class LaneBlock {
 public:
  Lanes weight_memory{}, weight_time{};

  /// Added to the cost of every entry of a leaf (entries x kLanes); per unique table, missing or empty: nothing.
  std::vector<std::vector<double>> adjust;

  /// Upward pass. False if no combination is allowed, or cancelled (a time limit does not end it: it yields the first
  /// plans). With a pool leaves and rows of large steps are shared out (for a single block; several blocks are better
  /// run side by side).
  bool inside(const Dag& dag, const Control& control, ThreadPool* pool = nullptr);
  /// Frees the tables of inside(); bound() and bounds() stay. Before outside() or trace(), inside() must be run again.
  void release();
  /// Lower bound of the weighted cost over all plans, per lane.
  double bound(int lane) const { return offsets_[root_][lane]; }
  /// Amount by which rounding may have falsified bounds of relevant plans, for this slack.
  double margin(int lane, double slack) const;
  /// An optimal plan of each lane (after inside()).
  std::vector<Choice> trace(const Dag& dag) const;
  /// Downward pass: partial points whose best completions lie in no region are of no use. `frugal` frees tables as soon
  /// as they are used up.
  void outside(const Dag& dag, const Slack& slack, const Control& control, bool frugal = false);

  /// Weighted cost of the best plan through an entry of a leaf, above the bound (after outside()); per lane.
  LaneValues marginals(std::uint32_t unique_table) const;

  const Slack& slack() const { return slack_; }
  const TableBounds& bounds(std::uint32_t unique_table) const { return bounds_[unique_table]; }
  const Lanes& offset(std::uint32_t unique_table) const { return offsets_[unique_table]; }

 private:
  void inside_leaf(const Leaf& leaf, const std::vector<double>* added, LaneValues& values, Lanes& offset) const;
  bool inside_leaves(const Dag& dag, ThreadPool* pool);
  bool normalise(std::uint32_t table, std::span<const std::array<float, kLanes>> least, ThreadPool* pool);

  std::vector<LaneValues> inside_;  ///< per unique table: entries x kLanes
  std::vector<Lanes> offsets_, shifts_;
  std::vector<TableBounds> bounds_;
  std::vector<LaneValues>
      outside_;  ///< of leaves as marginals() needs them; of inner tables only memory kept for later
  std::vector<char> outside_ready_;
  Slack slack_{};
  std::uint32_t root_ = 0;
  std::size_t operations_ = 0;
};

/// Every lane a region of its own, without regard to the others.
Slack separate(const Lanes& slack);

/// Plain loops over one lane, in doubles; the oracle of LaneBlock::inside. `added` as LaneBlock::adjust. Infinity where
/// nothing is allowed.
double scalar_bound(const Dag& dag, double weight_memory, double weight_time,
                    const std::vector<std::vector<double>>& added = {}, std::size_t lane = 0);

}  // namespace turnpoint::frontier::detail
