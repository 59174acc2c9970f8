// SPDX-License-Identifier: Apache-2.0
// What every method does that splits operators and searches a scenario once: structure, prices, its own answer, result.
// A searcher that answers while sliders move keeps the first two from pass to pass (searcher.h).
#pragma once

#include <functional>
#include <string>

#include "core/base/progress.h"
#include "core/frontier/problem.h"
#include "core/plan/result.h"
#include "core/search/frontier_tracking/costs.h"
#include "core/search/frontier_tracking/structure.h"

namespace turnpoint::search {

/// A method's own part: from the priced problem to the points that it answers with.
using ShardingSolve = std::function<Expected<frontier::Answer>(const Structure&, const PricedProblem&)>;

/// Errors: those of the structure, of pricing and of `solve`, as they are.
Expected<ResultPtr> run_sharding(const std::string& method, const ScenarioPtr& scenario, const SearchSpace& space,
                                 const ShardingSolve& solve, const RunContext& context);

/// Leaves of an answer its fastest point alone, at the costs that it has in `problem`: answers to a problem that was
/// changed for the search are told at their true prices. What was certified of the others goes.
void keep_fastest(const frontier::Problem& problem, frontier::Answer& answer);

}  // namespace turnpoint::search
