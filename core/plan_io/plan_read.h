// SPDX-License-Identifier: Apache-2.0
// turnpoint/plan@1 of kind sharding, read back: what write_plan() wrote (core/plan_io/plan_json.h), perhaps edited since.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// The plan for the scenario that it was found for. Every name, index and axis is checked against model and mesh, every
/// cost against what the evaluator and the cost model say (1e-9 relative). A file of before operators had `parts` is
/// read, too. `where` names file and plan. Bad input: what does not fit, with its place.
Expected<Plan> read_plan(const nlohmann::json& document, const std::string& where, const Scenario& scenario);

/// The plan alone, where its model is not at hand: names, indices and axes are checked against each other, parts of
/// costs against their sums.
struct PlanAlone {
  Model model;  ///< names, details and scopes of the operators, and the loop dimensions that are split; no tensors
  Plan plan;    ///< reshardings without their tensors, a pipeline without its model
  bool parts = true;  ///< false: of before operators had `parts`; costs are then zero where they have no parts
};
Expected<PlanAlone> read_plan_alone(const nlohmann::json& document, const std::string& where);

}  // namespace turnpoint
