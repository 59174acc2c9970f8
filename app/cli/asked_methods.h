// SPDX-License-Identifier: Apache-2.0
// --method and --settings: which methods a command asks, with which parameters.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/cli/scenario_arguments.h"
#include "app/cli/search_limits.h"
#include "core/base/expected.h"
#include "core/import/files/training_settings.h"
#include "core/search/registry.h"

namespace turnpoint::cli {

struct ChosenMethod {
  std::string name;  ///< with its parameters
  MethodChoice choice;
  std::unique_ptr<Searcher> searcher;
  std::string refusal = {};  ///< why it does not suit the scenario; empty: it does
};
/// "ft,optcnn", "all" (those that suit the scenario, less left_out_of_all()); a method's parameters follow its name
/// after colons, and limits become parameters where a method knows them. Usage error: an unknown name or parameter, a
/// method that is there twice, limits that suit none.
Expected<std::vector<ChosenMethod>> chosen_methods(const std::string& list, const Scenario& scenario,
                                                   const SearchLimits& limits = {});
/// "a, b and c": what `all` leaves out.
std::string left_out_of_all();

/// Batch, sequence and precision of a settings file where no option names them, with a note of what was taken.
Expected<TrainingSettings> take_settings(const std::string& path, ScenarioArguments& scenario);
/// The list of methods with the split of the settings behind it. Usage error: the list is "all".
Expected<std::string> with_split(const std::string& methods, const TrainingSettings& settings,
                                 const Scenario& scenario);

}  // namespace turnpoint::cli
