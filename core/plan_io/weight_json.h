// SPDX-License-Identifier: Apache-2.0
// The `weights` of a result (resources/manual/formats.md): how each is updated, and why.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/plan/weight_update.h"

namespace turnpoint {

nlohmann::json write_weight_updates(const std::vector<WeightUpdate>& weights);
/// What is no weight's update is left out: it explains a result, and is not part of its figures.
std::vector<WeightUpdate> read_weight_updates(const nlohmann::json& result);

}  // namespace turnpoint
