// SPDX-License-Identifier: Apache-2.0
// A whole sharding plan as JSON and back, for another process of ours to carry out: by index, to the last bit, beside
// the model it belongs to. What people read is turnpoint/plan@1 (core/plan_io/plan_json.h).
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_fields.h"
#include "core/plan/plan.h"

namespace turnpoint {

/// The plan must have no pipeline.
nlohmann::json write_plan_record(const Plan& plan);

/// What write_plan_record() wrote, for a model. Every index is checked against model and mesh; reasons are left in
/// `fields`. Whether the plan computes the model is not: evaluate_plan() and the execution see to that.
Plan read_plan_record(JsonFields fields, const Model& model);

}  // namespace turnpoint
