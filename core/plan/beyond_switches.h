// SPDX-License-Identifier: Apache-2.0
// What a plan does though the scenario's switches deny it to searches: a method that is nothing without sharded updates
// (`fsdp`), or a split whose text asks for them. Its point is no answer to the scenario's question, may lie below the
// certified frontier, and is drawn hollow and told apart.
#pragma once

#include <string>
#include <vector>

#include "core/plan/result.h"

namespace turnpoint {

/// The switches by their names on the command line ("update-sharding", "recompute"); empty: the result stays within its
/// scenario. Follows from the result's traits and the scenario's settings.
std::vector<std::string> beyond_switches(const Result& result);
/// "shards the weight update, which is switched off in this scenario: ..."; empty where it stays within.
std::string beyond_switches_note(const Result& result);

}  // namespace turnpoint
