// SPDX-License-Identifier: Apache-2.0
// The command line of a scenario: MODEL, --hardware, and one option per record of scenario_options().
#pragma once

#include <CLI/CLI.hpp>
#include <list>
#include <string>

#include "core/base/expected.h"
#include "core/import/source/model_source.h"
#include "core/scenario/scenario.h"

namespace turnpoint::cli {

struct ScenarioArguments {
  std::string model, as, hardware, without;
  /// Key and text as given; empty text: not given. A list, because the parser keeps references to its elements.
  std::list<std::pair<std::string, std::string>> options;
};

/// What open_model() takes for the model read as one of the family; the model itself where that is empty.
std::string model_as(const std::string& model, const std::string& family);
void add_scenario_arguments(CLI::App& app, ScenarioArguments& arguments);
Expected<ScenarioPtr> open_scenario(const ScenarioArguments& arguments);

struct OpenedScenario {
  ModelSourcePtr source;  ///< of the scenario's model, for whoever binds it to other batches
  ScenarioPtr scenario;
};
Expected<OpenedScenario> open_with_source(const ScenarioArguments& arguments);
/// What to say where --devices asks for more than the hardware has, and nodes were added; empty otherwise.
std::string note_on_added_nodes(const ScenarioArguments& arguments, const Scenario& scenario);

}  // namespace turnpoint::cli
