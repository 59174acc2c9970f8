// SPDX-License-Identifier: Apache-2.0
// ParDNN as printed (resources/manual/mathematics.md, 2): slicing, each way of mapping, refinement, memory; devices run
// tasks as they become ready.
#pragma once

#include "core/search/pardnn/refinement.h"

namespace turnpoint::pardnn {

/// `beat`: MemoryOptions::beat. Error: cancelled, before there was a mapping.
Expected<SimulatedPlacement> run_printed(const TaskGraph& graph, const placement::PlacementRequest& request,
                                         std::int64_t beat, const RunContext& context);

}  // namespace turnpoint::pardnn
