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

/// Calls that an improving stage may take, counted in tasks and edges so that the answer is the same everywhere: about
/// a second's work on one core up to 5,000 tasks, two from 10,000 on. None where that is too few to find anything.
std::uint64_t stage_calls(const TaskGraph& graph);
/// Anneals from `placement`, whose verdict it is, and from the best of `others` (most wanted first; who is where it is
/// is left out), and replaces both where it found something better, also where it is stopped. Half of what is left
/// goes, round by round, to finding out which half of the beginnings leads further: where one begins says little of
/// where it ends. Says where it began with what it found: 0: with `placement`, k: with the k-th of the others.
Expected<std::size_t> improve(const placement::ScheduleCosts& costs, placement::Judge& judge,
                              const placement::PlacementRequest& request, std::uint64_t calls,
                              const std::vector<const Placement*>& others, Placement& placement,
                              placement::Verdict& verdict, const RunContext& context);

}  // namespace turnpoint::annealing
