// SPDX-License-Identifier: Apache-2.0
// Why a fixed order can never finish, in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/placement.h"

namespace turnpoint {

/// `next[d]` is the place in placement.order[d] of the task that device d cannot start; beyond its list if it is done.
/// Names a ring of tasks each of which waits for the next.
std::string describe_deadlock(const TaskGraph& graph, const Placement& placement,
                              const std::vector<std::uint32_t>& next);

}  // namespace turnpoint
