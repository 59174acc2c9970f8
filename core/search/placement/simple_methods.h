// SPDX-License-Identifier: Apache-2.0
// The methods that others are compared with.
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

PlacementMethod heft_method();
PlacementMethod pipedream_method();
PlacementMethod layered_expert_method();
PlacementMethod round_robin_method();
PlacementMethod single_device_method();

// What the methods do, for those that begin with such placements.
Expected<SimulatedPlacement> run_single_device(const TaskGraph&, const PlacementRequest&, const RunContext&);
Expected<SimulatedPlacement> run_layered_expert(const TaskGraph&, const PlacementRequest&, const RunContext&);
Expected<SimulatedPlacement> run_pipedream(const TaskGraph&, const PlacementRequest&, const RunContext&);

/// The fastest device of those with the most memory that the graph fits on; else the one with the most memory.
std::uint32_t best_single_device(const TaskGraph& graph, const PlacementRequest& request);
/// The smallest of the devices' limits.
std::int64_t smallest_limit(const TaskGraph& graph, const PlacementRequest& request);

}  // namespace turnpoint::placement
