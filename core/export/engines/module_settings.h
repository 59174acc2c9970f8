// SPDX-License-Identifier: Apache-2.0
// What can be said of a plan by marking the modules of somebody's own PyTorch model: tensor groups, fully_shard() and
// checkpointing of whole layers.
#pragma once

#include <string_view>

#include "core/export/engines/engine_settings.h"

namespace turnpoint {

/// read_engine_settings(), of plans that such marks can say. Usage error: in one sentence why not, and what is nearest.
Expected<EngineSettings> read_module_settings(const Scenario& scenario, const Plan& plan, std::string_view engine);

}  // namespace turnpoint
