// SPDX-License-Identifier: Apache-2.0
// One run on one factor graph whose elimination is narrow enough: hull, coarse lists, exact lists.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "core/frontier/bounds.h"
#include "core/frontier/lists.h"
#include "core/frontier/solver.h"

namespace turnpoint::frontier::detail {

/// Slopes for a problem of which nothing is known yet: both ends, and a geometric sweep around the ratio of the ranges.
void first_weights(const Dag& dag, std::vector<double>& memory, std::vector<double>& time);

class Engine {
 public:
  /// `blocks` is working memory that may be used again for another engine afterwards; `policy` outlives this. A gap of
  /// `enough_gap` is all that exact() is to prove.
  Engine(const Graph& graph, const Elimination& plan, ThreadPool& pool, const Control& control, std::int64_t limit,
         std::vector<LaneBlock>& blocks, const Policy& policy, double enough_gap = 0)
      : graph_(graph),
        pool_(pool),
        control_(control),
        limit_(limit),
        enough_gap_(enough_gap),
        policy_(policy),
        blocks_(blocks) {
    build_dag(graph, plan, dag_);
  }
  Engine(const Engine&) = delete;

  /// Lagrangian plans and bounds. What is achieved already (plans of a previous run at new costs) guides the slopes.
  bool hull(Achieved& achieved);
  /// The same, and then along its chords until little can hide behind them.
  bool closed_hull(Achieved& achieved);
  /// The hull around these memories alone, at few slopes: its corners on either side of each. `like`: lines that bound
  /// a problem like this one, whose slopes are a good start; may be empty.
  bool hull_at(Achieved& achieved, std::span<const std::int64_t> limits, std::span<const BoundLine> like = {});
  /// After it: how much faster a plan within one of them may be at most than what is achieved and than `known`,
  /// seconds, as a share of the less, as far as that can be proven, or as is enough. What is found on the way is added.
  double fastest_at(Achieved& achieved, std::int64_t limit, double known, double max_products);
  /// Lines below which no plan lies, as another engine found them in hull() of the same graph.
  void know(std::vector<HalfPlane> planes) { planes_ = std::move(planes); }
  /// Quantised lists near the hull, traced back and re-costed.
  void coarse(Achieved& achieved, int buckets);
  /// One round of it after hull(), in buckets of 1 / `buckets` of the range, where a plan may improve on what is
  /// achieved by more than an eye follows, or more than that where tables alone take more than the products that are
  /// `allowed`. Returns the products of points that it took (0: nothing was open). Thorough: for smaller improvements,
  /// and a second round where the frontier is steep.
  double live(Achieved& achieved, double buckets, double allowed, bool thorough);
  /// Proves one gap after the other, down to the one that is enough, and then finds the whole frontier, within about so
  /// many products; true if it is whole. Beyond a gap that is enough no more than `whole_products` are taken; of 0, a
  /// few. Otherwise `floor` holds what was proven by bounds and corners, empty if nothing.
  bool exact(Achieved& achieved, double max_products, CostList& floor, double whole_products = 0);
  /// Lists over those states only that the plans on the hull use: close to the frontier for a small part of the work.
  /// Plans and bound among them are brought together within `max_products`; of 0, quantised lists do. False if nothing
  /// came of it.
  bool restricted(Achieved& achieved, int buckets, double max_products);
  /// Exact lists without any bounds, for small problems. False if they grew too large or the run was stopped.
  bool direct(Achieved& achieved);

  bool infeasible() const { return infeasible_; }
  const std::vector<HalfPlane>& half_planes() const { return planes_; }
  const Dag& dag() const { return dag_; }

 private:
  /// `beside`: the blocks of the slopes before stay in use.
  bool lanes(const std::vector<double>& memory, const std::vector<double>& time, std::vector<Point>* plans,
             bool beside = false);
  void for_blocks(std::size_t count, const std::function<void(std::size_t)>& run);
  void prune(const std::vector<Slack>& slack);
  bool beam(Achieved& achieved, double buckets, double width_share, const std::vector<Slack>& slack,
            double* products = nullptr);
  std::vector<Slack> steep(const Achieved& achieved, std::vector<Slack> regions) const;
  bool relane(Achieved& achieved, std::size_t count);
  bool close_chords(Achieved& achieved);
  Graph hull_states(const Achieved& achieved) const;
  void improve_at(Achieved& achieved, std::int64_t limit, double max_products);
  bool prove_at(Achieved& achieved, std::int64_t limit, double known, double tolerance, double& max_products);
  double prove(Achieved& achieved, double gap, double max_products, CostList& floor);
  bool prove_level(Achieved& achieved, double gap, double max_products, double& spent, CostList& floor);
  ListOptions thin_lists(const CostList& staircase, const Needed& needed, double apart, double max_products) const;
  bool find_plans(Achieved& achieved, const Needed& needed, double apart, double max_products, double& spent);
  bool raise_floor(const Achieved& achieved, const Needed& needed, double apart, double max_products, double& spent,
                   CostList& floor);
  bool find_all(Achieved& achieved, double max_products, CostList& floor);
  ListResult lists(Achieved& achieved, const std::vector<Slack>& slack, double max_products, double& products);
  ListResult open_lists(const Achieved& achieved, const std::vector<Slack>& slack, double max_products,
                        double& products, std::vector<ListTable>& lists);
  void add_bounds(const std::vector<Slack>& slack, ListOptions& options) const;
  std::size_t plans_within(std::size_t bytes) const;
  void collect(const std::vector<ListTable>& lists, Achieved& achieved);
  void unroll(const std::vector<ListTable>& lists, std::span<const std::uint32_t> wanted, Achieved& achieved);
  std::int64_t effective_limit(const Achieved& achieved) const;

  const Graph& graph_;
  ThreadPool& pool_;
  const Control& control_;
  std::int64_t limit_;
  double enough_gap_;
  const Policy& policy_;
  Dag dag_;
  std::vector<LaneBlock>& blocks_;
  std::vector<HalfPlane> planes_;
  std::span<const LaneBlock> used() const { return {blocks_.data(), used_}; }

  bool large_ = false;                       // a block's tables are freed at once
  std::size_t side_by_side_ = 1;             // blocks
  std::size_t used_ = 0;                     // blocks of the current slopes
  std::size_t max_plans_ = ~std::size_t(0);  // of one collection; what is proven needs all of them
  double apart_ = 0;                         // least distance of plans collected, as a sum of shares of both ranges
  double beam_wider_ = 1;                    // width of its buckets over the wanted one
  bool infeasible_ = false;
};

}  // namespace turnpoint::frontier::detail
