// SPDX-License-Identifier: Apache-2.0
// Plain search as placement methods: annealing, and placements drawn at random, each within a budget. And annealing as
// the last stage of another method.
#pragma once

#include "core/search/annealing/anneal.h"
#include "core/search/placement/judge.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::annealing {

placement::PlacementMethod simulated_annealing_method();
placement::PlacementMethod random_search_method();

/// Calls that an improving stage may take: about a second's work on one core, counted in tasks and edges so that the
/// answer is the same everywhere. None above 5,000 tasks.
std::uint64_t stage_calls(const TaskGraph& graph);
/// Anneals from `placement`, whose verdict it is, and replaces both where it found something better, also where it is
/// stopped.
Expected<void> improve(const placement::ScheduleCosts& costs, placement::Judge& judge,
                       const placement::PlacementRequest& request, std::uint64_t calls, Placement& placement,
                       placement::Verdict& verdict, const RunContext& context);

}  // namespace turnpoint::annealing
