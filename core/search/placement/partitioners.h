// SPDX-License-Identifier: Apache-2.0
// METIS and Scotch as placement methods, where the build found their libraries. Neither can be cancelled while it runs.
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

/// Empty, or why the method cannot run.
std::string metis_unavailable();
std::string scotch_unavailable();
Expected<PlacementResult> run_metis(const TaskGraph&, const PlacementRequest&, const RunContext&);
Expected<PlacementResult> run_scotch(const TaskGraph&, const PlacementRequest&, const RunContext&);

}  // namespace turnpoint::placement
