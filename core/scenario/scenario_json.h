// SPDX-License-Identifier: Apache-2.0
// The `scenario` object of results and sessions (resources/manual/formats.md).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// {model, batch, sequence, hardware, devices, precision, optimizer, accounting, factors, switches,
/// memory_limit_bytes?, seed, taken?}. `taken`: {setting, value, reason} of what nobody gave, to be read by people
/// alone. `model` is the source as the user named it; `devices` the number used.
nlohmann::json write_scenario(const Scenario& scenario);
/// [{setting, value, reason}], empty where all was given.
nlohmann::json write_taken(const std::vector<TakenSetting>& taken);

/// What a scenario object names; the model and the hardware are still to be opened.
struct ScenarioNames {
  std::string model, hardware;
  Settings settings;
};
Expected<ScenarioNames> read_scenario(const nlohmann::json& object, const std::string& where);

}  // namespace turnpoint
