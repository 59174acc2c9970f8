// SPDX-License-Identifier: Apache-2.0
// ParDNN (resources/manual/mathematics.md, 2): slicing, mapping, refinement, memory. Two variants: as printed, where
// devices run tasks as they become ready; and ours, where list schedules with an order of their own compete with the
// mapped clusters and the simulator picks.
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::pardnn {

placement::PlacementMethod published_method();
placement::PlacementMethod pardnn_method();

}  // namespace turnpoint::pardnn
