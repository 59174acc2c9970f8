// SPDX-License-Identifier: Apache-2.0
// Convex stages of the smallest maximum load, exactly: the dynamic programme over the downward-closed sets of the graph
// (Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020, section 5.1.1).
// A stage is the difference of two such sets, so that, unlike contiguous stages of one line, branches that run beside
// each other may be cut at different depths.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/progress.h"
#include "core/search/placement/placement_method.h"
#include "core/search/placement/units.h"

namespace turnpoint::placement {

/// Device by unit, of the smallest maximum load (max_load_s) among convex stages of forward tasks, each within the
/// memory limit; the backward tasks of a training graph go where their co-location groups are. Nothing where there is
/// none below `known` seconds, where forward tasks of units form a cycle, devices differ, or the sets are too many to
/// be gone through in about half a second.
std::optional<std::vector<std::uint32_t>> convex_stages(const TaskGraph& graph, const Units& units,
                                                        const PlacementRequest& request, double known,
                                                        const RunContext& context);

}  // namespace turnpoint::placement
