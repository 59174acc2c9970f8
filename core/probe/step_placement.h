// SPDX-License-Identifier: Apache-2.0
// The placement of a step job as JSON and back, and what the probe says of it when it is carried out.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "core/base/json_fields.h"
#include "core/probe/step_job.h"

namespace turnpoint {

nlohmann::json write_step_placement(const StepPlacement& placement);

/// What write_step_placement() wrote, for a model: every index is checked, every task is once in the order of its own
/// device, every transfer goes elsewhere and is there once. Reasons are left in `fields`. Whether what the tasks read
/// reaches them is not: the execution sees to that.
StepPlacement read_step_placement(JsonFields fields, const Model& model);

nlohmann::json write_measured(const MeasuredTask& task);
nlohmann::json write_measured(const MeasuredTransfer& transfer);
nlohmann::json write_measured(const MeasuredDevice& device);
nlohmann::json write_spread(const Spread& spread);

Spread read_spread(JsonFields& fields);
MeasuredTask read_measured_task(JsonFields& fields, const StepPlacement& placement);
MeasuredTransfer read_measured_transfer(JsonFields& fields, const StepPlacement& placement);
std::vector<MeasuredDevice> read_measured_devices(JsonFields& fields, int count);  ///< so many of them

}  // namespace turnpoint
