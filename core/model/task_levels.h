// SPDX-License-Identifier: Apache-2.0
// Where in the forward pass a task stands: shared by the parts that make a TaskHierarchy.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/task_graph.h"

namespace turnpoint {

inline bool is_folded(TaskKind kind) { return kind == TaskKind::backward || kind == TaskKind::update; }

/// Levels of the forward tasks among themselves: an edge leads to a higher level, and a task stands right before the
/// first that reads from it, so that weights are beside their layer instead of at the beginning. Backward and update
/// tasks stand one level behind all others.
std::vector<std::uint32_t> forward_levels(const TaskGraph& graph);

}  // namespace turnpoint
