// SPDX-License-Identifier: Apache-2.0
// The ratio plan of a step job as JSON and back, and what the probe says of it when it is carried out.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_fields.h"
#include "core/probe/step_job.h"

namespace turnpoint {

nlohmann::json write_step_ratio(const StepRatio& ratio);

/// What write_step_ratio() wrote, for a model: indices are checked, parts hold every rank once, every cut has a share
/// for each operator. Reasons are left in `fields`. Whether the shares leave every rank something is not checked:
/// whoever executes them sees to that.
StepRatio read_step_ratio(JsonFields fields, const Model& model);

nlohmann::json write_measured(const MeasuredMove& move);
MeasuredMove read_measured_move(JsonFields& fields, const Model& model);

}  // namespace turnpoint
