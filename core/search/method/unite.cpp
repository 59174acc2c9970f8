// SPDX-License-Identifier: Apache-2.0
#include "core/search/method/unite.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace turnpoint::search {

frontier::CostList costs_of(const Result& result) {
  frontier::CostList costs;
  for (const ResultPoint& point : result.points) costs.push_back({point.memory_bytes, point.time_s});
  return costs;
}

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
    std::set<const PlanSource*> sources;
    for (const From& from : from_) sources.insert(from.plans.get());
    std::size_t bytes = from_.capacity() * sizeof(From);
    for (const PlanSource* source : sources) bytes += source->bytes();
    return bytes;
  }

 private:
  std::vector<From> from_;
};

/// What no plan of the result lies below.
frontier::CostList bound_of(const Result& result) {
  return result.lower_bound.empty() ? costs_of(result) : result.lower_bound;
}

/// What each result says of its numbers of micro-batches, and what an earlier answer said of the same.
std::vector<NumberBound> bounds_of(const std::vector<ResultPtr>& results) {
  std::vector<NumberBound> bounds;
  for (const ResultPtr& result : results)
    for (const NumberBound& bound : result->bounds) {
      const auto found = std::ranges::find(bounds, bound.micro_batches, &NumberBound::micro_batches);
      if (found == bounds.end()) {
        bounds.push_back(bound);
        continue;
      }
      std::vector<frontier::BoundLine> both = found->lines;
      both.insert(both.end(), bound.lines.begin(), bound.lines.end());
      found->lines = frontier::upper_envelope(std::move(both));
    }
  return bounds;
}

}  // namespace

std::shared_ptr<Result> unite(const std::string& method, const std::vector<ResultPtr>& results, double search_s) {
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
  merged->search_s = search_s;
  std::vector<MergedPlans::From> from;
  for (auto& item : items) {
    if (!merged->points.empty() && item.point.time_s >= merged->points.back().time_s) continue;
    merged->points.push_back(item.point);
    from.push_back(std::move(item.from));
  }
  find_marks(*merged);
  merged->plans = std::make_shared<MergedPlans>(std::move(from));
  return merged;
}

std::shared_ptr<Result> unite_certified(const std::string& method, const std::vector<ResultPtr>& results,
                                        const std::vector<ResultPtr>& earlier, double slowest_considered_s,
                                        double search_s) {
  std::vector<ResultPtr> every = results;
  every.insert(every.end(), earlier.begin(), earlier.end());
  auto united = unite(method, every, search_s);
  united->slowest_considered_s = slowest_considered_s;
  united->bounds = bounds_of(every);
  find_marks(*united);
  const auto all = [&](auto holds) { return std::all_of(results.begin(), results.end(), holds); };
  united->exact = all([](const ResultPtr& result) { return result->exact; });
  if (united->exact) united->gap = 0;
  if (united->exact || !all([](const ResultPtr& result) { return result->gap.has_value(); })) return united;
  for (std::size_t i = 0; i < results.size(); ++i) {
    frontier::CostList bound = bound_of(*results[i]);
    if (!earlier.empty() && earlier[i]->gap) bound = frontier::higher(bound, bound_of(*earlier[i]));
    united->lower_bound = frontier::unite(united->lower_bound, bound);
  }
  united->gap = considered_gap(*united);
  return united;
}

double gap_above(const Result& result, const frontier::CostList& achieved) {
  return result.gap ? gap_between(bound_of(result), achieved) : std::numeric_limits<double>::infinity();
}

}  // namespace turnpoint::search
