// SPDX-License-Identifier: Apache-2.0
// Prices for a slider's moves. Searching the cheapest way of every resharding anew takes a third of a move, and ways
// seldom change: a move therefore goes the best of those ways that were the cheapest at some earlier position of
// the sliders, and searches only where all of these positions are far. Its plans are real and cost what is said; a
// cheaper way that no earlier position knows is missed until the hand rests.
#pragma once

#include <memory>
#include <vector>

#include "core/search/frontier_tracking/costs.h"

namespace turnpoint::search {

class MovedWays {
 public:
  struct Priced {
    std::shared_ptr<const Prices> prices;
    PricedProblem problem;
  };
  enum class Search { far, always };  ///< where no earlier position is near; the ways are then the cheapest of all

  /// The structure at the scenario's prices. Positions of another structure, or of scenarios that differ in more than
  /// what sliders move, are forgotten. `before` as Prices has it.
  Expected<Priced> price(const ScenarioPtr& scenario, const std::shared_ptr<const Structure>& structure,
                         const Prices* before, Search search, ThreadPool& pool, const RunContext& context);

  std::size_t positions() const { return positions_.size(); }

 private:
  void forget();
  bool knows(const Scenario& scenario, const std::shared_ptr<const Structure>& structure) const;
  bool near(const WhatIf& factors) const;

  std::shared_ptr<const Structure> structure_;
  ScenarioPtr example_;  ///< all positions' but for their factors
  std::vector<WhatIf> positions_;
  Prices::Finders finders_;  ///< [position]
  RouteBook routes_;         ///< of all positions
};

}  // namespace turnpoint::search
