// SPDX-License-Identifier: Apache-2.0
#include "core/search/pardnn/ready_order.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/simulation/ranked.h"

namespace turnpoint::pardnn {
namespace {

constexpr std::string_view kAsReady = ", run as ready";

void rank_by(const std::vector<double>& ways, RankedSimulator& simulator) {
  const double longest = std::max(*std::max_element(ways.begin(), ways.end()), 1e-300);
  for (TaskIndex t = 0; t < ways.size(); ++t) simulator.set_rank(t, float(ways[t] / longest));
}

}  // namespace

Expected<void> run_as_ready(const ScheduleCosts& costs, placement::Judge& judge, Ways ways, Judged& candidate) {
  RankedSimulator simulator(costs.graph(), costs.devices());
  const std::vector<std::uint32_t> device = candidate.placement.device;
  for (TaskIndex t = 0; t < device.size(); ++t) simulator.move(t, device[t]);
  for (const bool made_only : {false, true}) {
    if (made_only && ways != Ways::both) break;
    rank_by(placement::bottom_levels(costs, 1.0, made_only ? &device : nullptr), simulator);
    if (!simulator.run({candidate.verdict.makespan_s}) || simulator.makespan_s() >= candidate.verdict.makespan_s)
      continue;
    Placement ready;
    simulator.store(ready);
    auto verdict = judge.measure(ready);
    if (!verdict) return verdict.error();
    // Time decides; what lacks memory is another step's business, but what fits is not given up for time.
    if (verdict->shortage && !candidate.verdict.shortage) continue;
    candidate.placement.order = std::move(ready.order);
    candidate.verdict = std::move(*verdict);
    if (!candidate.origin.ends_with(kAsReady)) candidate.origin += kAsReady;
  }
  return {};
}

}  // namespace turnpoint::pardnn
