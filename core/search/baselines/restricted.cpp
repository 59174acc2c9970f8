// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/restricted.h"

#include <algorithm>

#include "core/frontier/solver.h"
#include "core/search/frontier_tracking/sharding_run.h"

namespace turnpoint::search {

namespace {

class MergedPlans : public PlanSource {
 public:
  struct From {
    std::shared_ptr<const PlanSource> plans;
    std::size_t point = 0;
  };
  explicit MergedPlans(std::vector<From> from) : from_(std::move(from)) {}
  AnyPlan plan(std::size_t point) const override { return from_.at(point).plans->plan(from_.at(point).point); }
  PlanKind kind(std::size_t point) const override { return from_.at(point).plans->kind(from_.at(point).point); }
  std::size_t bytes() const override {
    std::size_t bytes = 0;
    const PlanSource* last = nullptr;  // neighbours mostly come from one source
    for (const From& from : from_)
      if (from.plans.get() != last) last = from.plans.get(), bytes += last->bytes();
    return bytes;
  }

 private:
  std::vector<From> from_;
};

}  // namespace

Expected<ResultPtr> fastest_with(const std::string& method, const ScenarioPtr& scenario, const SearchSpace& space,
                                 const RunContext& context) {
  const auto solve = [&](const Structure&, const PricedProblem& priced) {
    auto answer = frontier::Solver().solve(priced.problem, {}, context);
    if (answer) answer->points.erase(answer->points.begin(), answer->points.end() - 1);
    return answer;
  };
  SearchSpace engines = space;
  engines.fewest_collectives = scenario->by_library();
  return run_sharding(method, scenario, engines, solve, context);
}

ResultPtr merge_points(const std::string& method, const std::vector<ResultPtr>& results, double search_s) {
  struct Item {
    ResultPoint point;
    MergedPlans::From from;
  };
  std::vector<Item> items;
  for (const auto& result : results)
    for (std::size_t k = 0; k < result->points.size(); ++k) items.push_back({result->points[k], {result->plans, k}});
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.point.memory_bytes, a.point.time_s) < std::tie(b.point.memory_bytes, b.point.time_s);
  });
  auto merged = std::make_shared<Result>();
  merged->scenario = results.front()->scenario;
  merged->method = method;
  merged->exact = true;
  merged->gap = 0;
  merged->search_s = search_s;
  std::vector<MergedPlans::From> from;
  for (auto& item : items) {
    if (!merged->points.empty() && item.point.time_s >= merged->points.back().time_s) continue;
    merged->points.push_back(item.point);
    from.push_back(std::move(item.from));
  }
  merged->turning_point = find_turning_point(merged->points);
  merged->near_best = find_near_best(merged->points);
  merged->plans = std::make_shared<MergedPlans>(std::move(from));
  return merged;
}

}  // namespace turnpoint::search
