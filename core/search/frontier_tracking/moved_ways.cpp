// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/moved_ways.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace turnpoint::search {

namespace {

// Between link speeds, or latencies, of two positions. Of five networks of slider_bench no curve erred by more than
// 0.15 % of its range more at three; the others judge it.
constexpr double kNearOctaves = 2;
constexpr std::size_t kMostPositions = 32;  // then all are forgotten, so that ways do not pile up for hours

double octaves(double a, double b) { return std::abs(std::log2(a / b)); }

}  // namespace

void MovedWays::forget() {
  structure_.reset();
  example_.reset();
  positions_.clear();
  finders_.clear();
  routes_.clear();
}

bool MovedWays::knows(const Scenario& scenario, const std::shared_ptr<const Structure>& structure) const {
  if (structure != structure_ || scenario.model != example_->model || scenario.cluster != example_->cluster)
    return false;
  Settings settings = scenario.settings;
  settings.factors = example_->settings.factors;
  return settings == example_->settings;
}

bool MovedWays::near(const WhatIf& factors) const {
  return std::any_of(positions_.begin(), positions_.end(), [&](const WhatIf& position) {
    return octaves(factors.intra_bandwidth, position.intra_bandwidth) <= kNearOctaves &&
           octaves(factors.inter_bandwidth, position.inter_bandwidth) <= kNearOctaves &&
           octaves(factors.latency, position.latency) <= kNearOctaves;
  });
}

Expected<MovedWays::Priced> MovedWays::price(const ScenarioPtr& scenario,
                                             const std::shared_ptr<const Structure>& structure, const Prices* before,
                                             Search search, ThreadPool& pool, const RunContext& context) {
  if (!knows(*scenario, structure) || positions_.size() == kMostPositions) forget();
  const WhatIf& factors = scenario->settings.factors;
  const bool old_ways = search == Search::far && near(factors);
  const auto prices =
      std::make_shared<const Prices>(scenario, structure, before, old_ways ? finders_ : Prices::Finders{});
  auto problem = price_problem(*prices, pool, context, &routes_, old_ways);
  if (!problem) {
    if (!old_ways) forget();  // perhaps half filled
    return problem.error();
  }
  if (!old_ways) {
    structure_ = structure;
    example_ = scenario;
    if (std::find(positions_.begin(), positions_.end(), factors) == positions_.end()) {
      positions_.push_back(factors);
      finders_.push_back(prices->resharding());
    }
  }
  return Priced{prices, std::move(*problem)};
}

}  // namespace turnpoint::search
