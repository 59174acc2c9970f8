// SPDX-License-Identifier: Apache-2.0
// `search --objective mini-time|mini-parallelism|profile|largest-batch`.
#pragma once

#include <string>
#include <vector>

#include "app/cli/scenario_arguments.h"
#include "core/plan_io/result_text.h"
#include "core/search/objectives.h"

namespace turnpoint::cli {

/// The method as it was asked for: its name, then its parameters after colons.
std::string full_method(const Result& result);

/// What is written of each point besides its cost.
struct WrittenParts {
  WrittenPlans plans;
  bool simulated = false;
  bool table = false;  ///< for a person, instead of the document
};

/// Searches, writes the results and says on standard error what was found; returns the exit code. 4 where nothing fits
/// (on no count of devices), with the results written nevertheless. Methods that give no answer: answers.h.
int run_objective(Objective objective, const std::vector<Contender>& methods, const OpenedScenario& opened,
                  RunContext context, const WrittenParts& parts, const std::string& out);

}  // namespace turnpoint::cli
