// SPDX-License-Identifier: Apache-2.0
// Plans of the comparison methods: configurations are given, what is left to choose (which copies are kept, where
// shared tensors lie) is solved exactly on the same prices as `ft`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/progress.h"
#include "core/cost/resharding.h"
#include "core/plan/result.h"
#include "core/search/frontier_tracking/structure.h"

namespace turnpoint::search {

/// The fastest plan in a space in which operators have one configuration, few of them several, and one choice of
/// memory. `ways`: how layouts change where collectives are the library's; else they take the cheapest way.
Expected<ResultPtr> fastest_with(const std::string& method, const ScenarioPtr& scenario, const SearchSpace& space,
                                 ReshardingModel::Ways ways, const RunContext& context);

/// The Pareto-optimal ones of several single-point results of one scenario, as one result. At least one.
ResultPtr merge_points(const std::string& method, const std::vector<ResultPtr>& results, double search_s);

}  // namespace turnpoint::search
