// SPDX-License-Identifier: Apache-2.0
// Placements as turnpoint/plan@1 (resources/manual/formats.md).
#pragma once

#include <optional>
#include <string>

#include "core/base/json_fields.h"
#include "core/plan/placement_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// turnpoint/plan@1 of kind placement: the keys of turnpoint/placement@1, which placement readers find in it, beside
/// the model, the hardware and what the simulator says.
std::string write_placement_plan(const Scenario& scenario, const PlacementPlan& plan);
/// What the training graph was made with that such a plan places; none where the plan does not say.
std::optional<TrainingGraphOptions> read_made_with(JsonFields& plan);

}  // namespace turnpoint
