// SPDX-License-Identifier: Apache-2.0
// The placement methods as search methods: on a Model's scenario they place its training graph, on a scenario with a
// task graph that graph. Their answers are on the simulated clock, in the same chart as every other method's.
#pragma once

#include <vector>

#include "core/search/method/method.h"

namespace turnpoint::search {

/// One Method per entry of placement::placement_methods(), in its order.
///
/// A point: memory the largest device's peak, time the makespan, of which compute_s is the busiest device's computing
/// and network_s the rest: its waiting for transfers and for others. Its plan is a PlacementPlan. A run gives the
/// method's answer and, of what it met besides, the points that nothing beats. What does not fit is a result too, whose
/// point does not fit.
/// SearchPass::coarse simulates the placements found last under the new scenario where the tasks and devices are still
/// the same (a slider), else it is a full run; the exact pass on the same scenario then returns what is there. The
/// progress of a method that learns has a LiveSearch for its detail (live_search.h).
std::vector<Method> placement_search_methods();

/// Whether it is what a placement method had when the user stopped it: one of its notes then says so. Of a Searcher it
/// is no answer, and the same is searched when it is asked for again.
bool stopped_early(const Result& result);
/// Whether it is what a search had while it ran (live_search.h); one of its notes then says so.
bool has_not_ended(const Result& result);

}  // namespace turnpoint::search
