// SPDX-License-Identifier: Apache-2.0
// Long rings of a factor graph, which a greedy elimination order handles badly.
#pragma once

#include <limits>

#include "core/frontier/graph.h"
#include "core/frontier/policy.h"

namespace turnpoint::frontier::detail {

inline constexpr std::uint32_t kNoPivot = std::numeric_limits<std::uint32_t>::max();

/// A factor that closes a long ring (a tied weight from the first layer to the last) is cut late by the greedy order,
/// which then multiplies long lists by long lists. With one end of it kept to the last the ring is a chain that adds
/// short lists to long ones. Returns that end; kNoPivot if there is no long ring, or if looking takes more steps.
std::uint32_t ring_pivot(const Graph& graph, double most_steps, const Policy& policy = {});

}  // namespace turnpoint::frontier::detail
