// SPDX-License-Identifier: Apache-2.0
// Opens, binds and cuts: from what the user asked for to a scenario. Runs on a worker; no Qt.
#pragma once

#include "app/scenario_state.h"
#include "app/search_backend.h"

namespace turnpoint::app {

/// `before` lends its source and cluster where the specification did not change.
Expected<ScenarioState> build_scenario(const SearchBackend& backend, const ScenarioRequest& request,
                                       const ScenarioState& before);

/// The same model and cluster under other settings; only for settings that need no new binding (see needs_build).
ScenarioState with_settings(const ScenarioState& state, const Settings& settings);

/// What somebody chose of the state's settings: all that was not taken from the model.
GivenSettings given_in(const ScenarioState& state);

/// Batch, sequence and devices change the model or the cluster; everything else only changes costs.
bool needs_build(const Settings& from, const Settings& to);

}  // namespace turnpoint::app
