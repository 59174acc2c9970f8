// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/sharding_run.h"

#include <chrono>

#include "core/base/parallel.h"
#include "core/search/frontier_tracking/plans.h"

namespace turnpoint::search {

Expected<ResultPtr> run_sharding(const std::string& method, const ScenarioPtr& scenario, const SearchSpace& space,
                                 const ShardingSolve& solve, const RunContext& context) {
  const auto start = std::chrono::steady_clock::now();
  const auto structure = build_structure(*scenario, space, context);
  if (!structure) return structure.error();
  ThreadPool pool(context.threads);
  const auto prices = std::make_shared<const Prices>(scenario, *structure);
  const auto priced = price_problem(*prices, pool, context);
  if (!priced) return priced.error();
  auto answer = solve(**structure, *priced);
  if (!answer) return answer.error();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return make_result(method, scenario, prices, *priced, std::move(*answer), elapsed.count());
}

void keep_fastest(const frontier::Problem& problem, frontier::Answer& answer) {
  answer.points.erase(answer.points.begin(), answer.points.end() - 1);
  frontier::Point& point = answer.points.front();
  const frontier::CostPoint cost = frontier::evaluate(problem, point);
  point.memory = cost.memory;
  point.time = cost.time;
  answer.lower_bound.clear();
  answer.lines.clear();
}

}  // namespace turnpoint::search
