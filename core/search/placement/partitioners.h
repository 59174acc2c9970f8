// SPDX-License-Identifier: Apache-2.0
// METIS and Scotch as placement methods, where the build found their libraries. Neither can be cancelled while it runs.
#pragma once

#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

PlacementMethod metis_method();
PlacementMethod scotch_method();

}  // namespace turnpoint::placement
