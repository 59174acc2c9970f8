// SPDX-License-Identifier: Apache-2.0
// What a placement needs in memory whatever it looks like: where that is more than there is, no search can help.
#pragma once

#include <string>

#include "core/model/task_graph.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

/// Why no placement fits the request's limits, in words; empty where that is not proven (which does not mean that one
/// fits). Four bounds, each of them sure:
///   - what is held to the end, parameters and tensors without a reader, against all devices together;
///   - the parameters of one co-location group against the largest device;
///   - one task with its group's parameters, its inputs, output and workspace against the largest device;
///   - groups of which no two fit on the largest device against the number of devices.
/// Under max_load parameters alone are counted.
std::string never_fits(const TaskGraph& graph, const PlacementRequest& request);

}  // namespace turnpoint::placement
