// SPDX-License-Identifier: Apache-2.0
// Why a weight's update is sharded or left whole, in words and figures.
#pragma once

#include <string>

#include "core/search/update_sharding/decision.h"

namespace turnpoint::update_sharding {

/// "3.50 ms", "44.1 us", "0 ms"
std::string words_of_seconds(double seconds);

/// One sentence without full stop, of a decision that is complete but for it.
std::string reason_of(const Program& program, const UpdateCluster& cluster, const WeightDecision& decision);

}  // namespace turnpoint::update_sharding
