// SPDX-License-Identifier: Apache-2.0
// Sharding plans and pipelines as turnpoint/plan@1 (resources/manual/formats.md); core/plan_io/plan_read.h reads them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

nlohmann::json write_plan(const Scenario& scenario, const Plan& plan);
/// The cost of a whole plan, with its parts.
nlohmann::json write_cost(const CostBreakdown& cost);

}  // namespace turnpoint
