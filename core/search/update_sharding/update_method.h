// SPDX-License-Identifier: Apache-2.0
// Automatic cross-replica sharding of the weight update as a method (Xu et al., arXiv 2004.13336): data parallelism in
// which every weight's update is whole or shared out among replicas, whichever takes the least time. The training
// program with its loop says what is forced (decision.h); the plan is priced like every other. One answer.
#pragma once

#include <string>
#include <vector>

#include "core/search/method/method.h"

namespace turnpoint::search {

/// A searcher of another method that splits operators, by its name; usage error where there is none.
using MethodFinder = Expected<std::unique_ptr<Searcher>> (*)(const std::string& name);

/// "checkpoint=N", "summary=N", "evaluation=N": every so many steps, 0: never. "of=METHOD": on the splits of that
/// method's fastest plan in place of data parallelism. `others`: the names of those that may stand there, for whoever
/// offers a choice.
Method update_sharding_method(MethodFinder find, std::vector<std::string> others);

}  // namespace turnpoint::search
