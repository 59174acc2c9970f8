// SPDX-License-Identifier: Apache-2.0
// Lagrange multipliers for a relaxation, sixteen slopes at a time: prices per state that draw the copies of a cut
// variable together and raise the lower bound. First by equal min-marginals of all copies, which gains most of it in a
// few steps but may come to rest too early; then by the volume algorithm (Barahona and Anbil, Math. Program. 87, 2000:
// a subgradient method that goes along the mean of what the relaxed plans choose), which does not.
#pragma once

#include <array>
#include <map>
#include <set>

#include "core/frontier/bounds.h"
#include "core/frontier/policy.h"
#include "core/frontier/relaxation.h"

namespace turnpoint::frontier::detail {

/// What the relaxed plans of one slope choose; it suggests where plans of the whole problem are to be looked for.
struct LaneChoice {
  double weight_memory = 0, weight_time = 0;
  std::map<std::uint32_t, std::set<std::uint32_t>> states;  ///< leaf of a variable of the whole -> states
  std::vector<std::uint32_t> assignment;                    ///< per cut variable: the best common state
};

class Multipliers {
 public:
  /// `graph` is the whole problem. At most as many weights as lanes; the last one is repeated.
  Multipliers(const Graph& graph, const Relaxation& relaxation, const Dag& dag, ThreadPool& pool,
              const Control& control, const Policy& policy, const std::vector<double>& memory,
              const std::vector<double>& time);

  /// False if the relaxation has no plan at all, or cancelled.
  bool average();
  /// Towards the costs of what is achieved, which must not be empty. False if cancelled.
  bool climb(const Achieved& achieved);

  /// One per lane, safe from rounding.
  std::vector<HalfPlane> half_planes() const;
  const std::vector<LaneChoice>& choices() const { return choices_; }
  bool infeasible() const { return infeasible_; }

 private:
  using Prices = std::vector<std::vector<double>>;  ///< per unique table, entries x lanes; empty without copies
  using LaneFlags = std::array<bool, kLanes>;

  LaneFlags note_bounds();
  double largest_sum(std::size_t lane) const;
  void aim(const LaneFlags& better);
  void move(const Prices& from, const Prices& direction, const Lanes& step);
  void balance(const Relaxation::Copies& copies);
  void note_states(const std::vector<Choice>& plans);
  std::uint32_t state_of(std::uint32_t variable, const Choice& plan) const;
  std::vector<std::vector<double>> disagreement(const Relaxation::Copies& copies,
                                                const std::vector<Choice>& plans) const;

  const Graph& graph_;
  const Relaxation& relaxation_;
  const Dag& dag_;
  ThreadPool& pool_;
  const Control& control_;
  const Policy& policy_;
  LaneBlock block_;
  Lanes best_;  ///< bounds, but for rounding
  Prices best_prices_, direction_;
  std::vector<LaneChoice> choices_;
  bool infeasible_ = false;
};

}  // namespace turnpoint::frontier::detail
