// SPDX-License-Identifier: Apache-2.0
// Ratio plans as turnpoint/plan@1 of kind ratio (resources/manual/formats.md), written and read back.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/plan/ratio_plan.h"

namespace turnpoint {

nlohmann::json write_ratio_plan(const Scenario& scenario, const RatioPlan& plan);

/// The plan for the scenario that it was found for, its costs worked out anew. Bad input: what does not fit the model
/// or its devices, with its place; costs other than the file's are for the caller to compare.
Expected<RatioPlan> read_ratio_plan(const nlohmann::json& document, const std::string& where, const Scenario& scenario);

}  // namespace turnpoint
