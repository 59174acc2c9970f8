// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/run_again.h"

#include <chrono>

#include "core/frontier/solver.h"
#include "core/plan/one_plan.h"
#include "core/schedule/simulated_points.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

Expected<ResultPtr> frontier_over_reruns(const std::string& method, const ScenarioPtr& scenario,
                                         const SearchSpace& space, const RunContext& context) {
  auto again = std::make_shared<Scenario>(*scenario);
  again->settings.recompute = true;
  again->settings.update_sharding = again->settings.offload = false;
  return run_sharding(
      method, again, space,
      [&](const Structure&, const PricedProblem& priced) {
        return frontier::Solver().solve(priced.problem, {}, context);
      },
      context);
}

Expected<bool> has_room(const Result& result, std::size_t point, const RunContext& context) {
  if (result.scenario->settings.accounting == Accounting::paper) return result.points[point].fits;
  const std::size_t indices[] = {point};
  const auto cost = simulate_points(result, indices, context);
  if (!cost) return cost.error();
  return cost->front().fits(result.scenario->memory_limit());
}

Expected<std::optional<std::size_t>> last_with_room(const Result& all, const RunContext& context) {
  std::size_t with = 0, without = all.points.size();
  const auto any = has_room(all, 0, context);
  if (!any) return any.error();
  if (!*any) return std::optional<std::size_t>();
  while (without - with > 1) {
    const std::size_t middle = (with + without) / 2;
    const auto fits_there = has_room(all, middle, context);
    if (!fits_there) return fits_there.error();
    (*fits_there ? with : without) = middle;
  }
  return std::optional(with);
}

ResultPtr only_point(const ResultPtr& all, const ScenarioPtr& scenario, std::size_t point) {
  auto one = std::make_shared<Result>(*all);
  one->scenario = scenario;
  one->points = {all->points[point]};
  one->lower_bound.clear();
  one->turning_point.reset();
  one->near_best.reset();
  if (one->points.front().fits) one->near_best = 0;
  one->plans = std::make_shared<OnePlan>(all->plans, point);
  return one;
}

Expected<ResultPtr> CheckpointedDataParallel::run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  SearchSpace space;
  space.only = [](OperatorId, const Operator& op, const Mesh& mesh) {
    return std::vector<Configuration>{data_parallel_configuration(op, mesh)};
  };
  const auto all = frontier_over_reruns("data-parallel", scenario, space, context);
  if (!all) return all.error();
  const auto point = last_with_room(**all, context);
  if (!point) return point.error();
  auto named = std::make_shared<Result>(*only_point(*all, scenario, point->value_or(0)));
  named->method_options = parameters_;
  named->search_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return ResultPtr(std::move(named));
}

}  // namespace turnpoint::search
