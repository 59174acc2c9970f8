// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/restricted.h"

#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/sharding_run.h"
#include "core/search/method/unite.h"

namespace turnpoint::search {

Expected<ResultPtr> fastest_with(const std::string& method, const ScenarioPtr& scenario, const SearchSpace& space,
                                 ReshardingModel::Ways ways, const RunContext& context) {
  const auto solve = [&](const Structure&, const PricedProblem& priced) {
    auto answer = frontier::Solver().solve(priced.problem, {}, context);
    if (answer) answer->points.erase(answer->points.begin(), answer->points.end() - 1);
    return answer;
  };
  SearchSpace chosen = space;
  chosen.fewest_collectives = ways == ReshardingModel::Ways::fewest && scenario->by_library();
  return run_sharding(method, scenario, chosen, solve, context);
}

ResultPtr merge_points(const std::string& method, const std::vector<ResultPtr>& results, double search_s) {
  auto merged = unite(method, results, search_s);
  merged->exact = true;
  merged->gap = 0;
  return merged;
}

}  // namespace turnpoint::search
