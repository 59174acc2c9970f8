// SPDX-License-Identifier: Apache-2.0
// ParDNN (resources/manual/mathematics.md, 2): slicing, mapping, refinement, memory. Two variants: as printed, where
// devices run tasks as they become ready; and ours, where list schedules with an order of their own compete with the
// mapped clusters and the simulator picks.
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::pardnn {

placement::PlacementMethod published_method();
placement::PlacementMethod pardnn_method();

/// `pardnn` as it is where no device may run what is ready before its list's turn: what stands in where the orders of
/// what is ready do not fit. Whatever fits in these orders, `pardnn` fits, up to 5,000 tasks.
Expected<SimulatedPlacement> run_in_listed_orders(const TaskGraph& graph, const placement::PlacementRequest& request,
                                                  const RunContext& context);

}  // namespace turnpoint::pardnn
