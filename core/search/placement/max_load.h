// SPDX-License-Identifier: Apache-2.0
// Placement for the objective max-load: contiguous stages by dynamic programming over several lines of the graph, then
// seeded annealing by moves of single units (a task, or a co-location group) under the memory limits. Where the user
// stops it, the best until then is the answer (stopped_early()).
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

Expected<SimulatedPlacement> run_max_load(const TaskGraph&, const PlacementRequest&, const RunContext&);

}  // namespace turnpoint::placement
