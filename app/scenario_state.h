// SPDX-License-Identifier: Apache-2.0
// One state of the document: the scenario with the sources it was made from. A plain value of shared immutable parts,
// so undo keeps whole states cheaply.
#pragma once

#include <string>

#include "core/import/source/model_source.h"
#include "core/scenario/scenario.h"
#include "core/search/scenario_of.h"

namespace turnpoint::app {

struct ScenarioState {
  std::string model;  ///< specification as the user gave it
  std::string hardware;
  ModelSourcePtr source;  ///< unbound model
  ClusterPtr cluster;     ///< before cutting to `settings.devices`
  ScenarioPtr scenario;   ///< null: nothing open
  std::string content;    ///< content_digest() of `scenario`
  std::string unbound;    ///< unbound_digest() of `source` and `cluster`
};

/// What a state is asked to become; sources are reused where the specification is unchanged.
struct ScenarioRequest {
  std::string model, hardware;
  Settings settings;
  /// What is not given is taken from the model, whatever `settings` says (core/search/scenario_of.h).
  GivenSettings given = {true, true, true};
  /// A task graph is placed on the devices of its own file, whatever `hardware` says. A model never is: where
  /// `hardware` is empty or a task graph's, it gets `usual_hardware`.
  bool model_chooses_hardware = false;
  std::string usual_hardware{};
  /// The profile of this name may be another one than before: `local` measured anew.
  bool read_hardware_again = false;
};

}  // namespace turnpoint::app
