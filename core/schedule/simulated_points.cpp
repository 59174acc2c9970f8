// SPDX-License-Identifier: Apache-2.0
#include "core/schedule/simulated_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>

#include "core/base/parallel.h"

namespace turnpoint {
namespace {

std::vector<std::size_t> all_of(const Result& result) {
  std::vector<std::size_t> indices(result.points.size());
  std::iota(indices.begin(), indices.end(), std::size_t(0));
  return indices;
}

/// Entries that none with less or equal memory beats or equals, by rising memory.
std::vector<std::size_t> pareto_line(const std::vector<SimulatedCost>& cost) {
  std::vector<std::size_t> order(cost.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return cost[a].memory_bytes != cost[b].memory_bytes ? cost[a].memory_bytes < cost[b].memory_bytes
                                                        : cost[a].time_s < cost[b].time_s;
  });
  std::vector<std::size_t> line;
  for (const std::size_t i : order)
    if (line.empty() || cost[i].time_s < cost[line.back()].time_s) line.push_back(i);
  return line;
}

}  // namespace

Expected<std::vector<SimulatedCost>> simulate_points(const Result& result, std::span<const std::size_t> indices,
                                                     const RunContext& context) {
  std::vector<SimulatedCost> costs(indices.size());
  for (const std::size_t index : indices)
    if (index >= result.points.size())
      return usage_error(fmt::format("the result has {} points and none of index {}", result.points.size(), index));
  if (result.clock == Clock::simulated) {
    for (std::size_t i = 0; i < indices.size(); ++i)
      costs[i] = {result.points[indices[i]].time_s, result.points[indices[i]].memory_bytes};
    return costs;
  }
  if (!result.plans) return bad_input("the result has no plans to simulate", result.method);
  const PlanLowering lowering(*result.scenario);
  ThreadPool pool(context.threads);
  std::atomic<std::size_t> done = 0;
  std::mutex guard;
  std::optional<Error> fault;
  std::size_t fault_at = std::numeric_limits<std::size_t>::max();
  context.report("simulated points", 0);
  pool.for_each(indices.size(), [&](std::size_t i, int) {
    if (context.cancelled()) return;
    const auto cost = result.plans->kind(indices[i]) == PlanKind::ratio
                          ? simulate_plan(*result.scenario, *std::get<RatioPlanPtr>(result.plans->plan(indices[i])))
                          : simulate_plan(lowering, result.plans->sharding(indices[i]));
    if (cost) {
      costs[i] = *cost;
    } else {
      const std::lock_guard lock(guard);
      if (i < fault_at) fault = cost.error(), fault_at = i;
    }
    const std::size_t now = ++done;
    if (now % 64 == 0) context.report("simulated points", double(now) / double(indices.size()));
  });
  if (context.cancelled()) return cancelled_error();
  if (fault) return *fault;
  return costs;
}

Expected<ResultPtr> with_simulated_points(const ResultPtr& result, const RunContext& context) {
  const auto costs = simulate_points(*result, all_of(*result), context);
  if (!costs) return costs.error();
  auto filled = std::make_shared<Result>(*result);
  for (std::size_t i = 0; i < costs->size(); ++i) {
    filled->points[i].simulated_time_s = (*costs)[i].time_s;
    filled->points[i].simulated_memory_bytes = (*costs)[i].memory_bytes;
  }
  return ResultPtr(std::move(filled));
}

std::vector<std::size_t> spread_points(const Result& result, std::size_t most) {
  const auto& points = result.points;
  most = std::max<std::size_t>(most, 8);
  if (points.size() <= most) return all_of(result);
  const std::size_t first = result.first_considered();
  std::vector<std::size_t> chosen{0, first, points.size() - 1};
  for (const auto& special : {result.turning_point, result.near_best, result.fastest_that_fits()})
    if (special) chosen.push_back(*special);
  // Length of the drawn curve up to each point.
  const double width = double(points.back().memory_bytes - points[first].memory_bytes);
  const double height = std::abs(points[first].time_s - points.back().time_s);
  std::vector<double> along(points.size(), 0);
  for (std::size_t i = first + 1; i < points.size(); ++i) {
    const double dx = width > 0 ? double(points[i].memory_bytes - points[i - 1].memory_bytes) / width : 0;
    const double dy = height > 0 ? (points[i - 1].time_s - points[i].time_s) / height : 0;
    along[i] = along[i - 1] + std::hypot(dx, dy);
  }
  const std::size_t others = most - chosen.size();
  for (std::size_t k = 1; k <= others; ++k) {
    const double at = along.back() * double(k) / double(others + 1);
    const auto from = along.begin() + std::ptrdiff_t(first);
    chosen.push_back(std::size_t(std::lower_bound(from, along.end(), at) - along.begin()));
  }
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

Expected<SimulatedCurve> simulated_curve(const Result& result, std::size_t most, const RunContext& context) {
  SimulatedCurve curve;
  curve.index = spread_points(result, most);
  auto costs = simulate_points(result, curve.index, context);
  if (!costs) return costs.error();
  curve.cost = std::move(*costs);
  curve.line = pareto_line(curve.cost);
  curve.complete = curve.index.size() == result.points.size();
  return curve;
}

}  // namespace turnpoint
