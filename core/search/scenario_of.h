// SPDX-License-Identifier: Apache-2.0
// From an opened source and hardware to a scenario, models and task graphs alike.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/import/model_source.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Opens the hardware, binds the model and cuts the cluster. `hardware` empty: a task graph's own file; a usage error
/// where the source is a model.
Expected<ScenarioPtr> scenario_of(const ModelSource& source, const std::string& hardware, const Settings& settings);

}  // namespace turnpoint
