// SPDX-License-Identifier: Apache-2.0
// What a placement takes whatever it looks like: where that is no less than what was found, no search can help.
#pragma once

#include <cstdint>

#include "core/model/task_graph.h"

namespace turnpoint::placement {

/// No placement on the first `devices` devices ends sooner: all tasks' time shared out among all of them with nothing
/// idle, or the longest way through the graph on the fastest device with no transfer, whichever takes longer. A little
/// less than either, so that rounding never makes it more than what a simulation says.
double least_makespan_s(const TaskGraph& graph, std::uint32_t devices);

}  // namespace turnpoint::placement
