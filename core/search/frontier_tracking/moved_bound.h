// SPDX-License-Identifier: Apache-2.0
// What is certain of a frontier while a slider is dragged: certified answers at other positions of the sliders bound it
// from below. Bandwidths, latency and device speed scale times and leave memory alone: with r the smallest of 1 and the
// ratios by which the network's times change, s the same for computing, every plan's new time is at least
// s C + r N. With a certified L <= C + N and the least compute time of any plan c <= C that is at least
//   r L + (s - r) c   where s >= r,   else s L.
// It is crude (links that become slower bound nothing beyond what was), but it holds for every plan of the search.
#pragma once

#include <vector>

#include "core/frontier/problem.h"
#include "core/search/frontier_tracking/costs.h"

namespace turnpoint::search {

/// The least compute time that any choice of configurations has, seconds.
double least_compute_seconds(const Structure& structure, const PricedProblem& priced);
/// The same without prices of anything else: of forward and backward alone, which no choice computes less than.
double least_passes_seconds(const Prices& prices, ThreadPool& pool, const RunContext& context);

class MovedBounds {
 public:
  /// A certified answer of a scenario; forgets those of scenarios that differ in more than factors and limits.
  void add(const Scenario& scenario, const frontier::Answer& answer, double least_compute_s);
  /// Nothing but the least compute time is certain.
  void add(const Scenario& scenario, double least_compute_s);
  /// The best of all bounds: memory rising, time falling. Empty where nothing is known of such a scenario.
  std::vector<frontier::CostPoint> at(const Scenario& scenario) const;

 private:
  struct Known {
    Scenario scenario;
    std::vector<frontier::CostPoint> bound;
    double least_compute_s = 0;
  };
  void forget_what_is_replaced(const Scenario& scenario);

  std::vector<Known> known_;
};

/// Gives an answer that bound: `certified`, its gap and the staircase.
void certify(frontier::Answer& answer, std::vector<frontier::CostPoint> bound);

}  // namespace turnpoint::search
