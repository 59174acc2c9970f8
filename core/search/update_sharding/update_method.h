// SPDX-License-Identifier: Apache-2.0
// Automatic cross-replica sharding of the weight update as a method (Xu et al., arXiv 2004.13336): data parallelism in
// which every weight's update is whole or shared out among replicas, whichever takes the least time. The training
// program with its loop says what is forced (decision.h); the plan is priced like every other. One answer.
#pragma once

#include <string>
#include <vector>

#include "core/search/method/method.h"

namespace turnpoint::search {

/// What this method asks of the list of methods, which only the registry knows.
struct OtherMethods {
  std::vector<std::string> names;  ///< that may stand behind "of=", for whoever offers a choice
  /// Of a method that splits operators and updates weights whole; usage error where there is none of that name, or none
  /// with these parameters.
  Expected<std::unique_ptr<Searcher>> (*searcher)(const std::string& name, std::string_view parameters) = nullptr;
  /// Why it cannot run on a scenario; empty: it can.
  std::string (*refusal)(const std::string& name, std::string_view parameters, const Scenario&) = nullptr;
  MethodTraits (*traits)(const std::string& name, std::string_view parameters) = nullptr;
};

/// "checkpoint=N", "summary=N", "evaluation=N": every so many steps, 0: never. "of=METHOD": on the splits of that
/// method's fastest plan in place of data parallelism; all parameters but these four are then METHOD's.
Method update_sharding_method(OtherMethods others);

}  // namespace turnpoint::search
