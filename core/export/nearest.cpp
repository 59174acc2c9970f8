// SPDX-License-Identifier: Apache-2.0
#include "core/export/nearest.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace turnpoint {

std::vector<std::size_t> nearest_order(const std::vector<ResultPoint>& points) {
  const bool some_fit = std::ranges::any_of(points, &ResultPoint::fits);
  std::vector<std::size_t> order;  // points are sorted by rising memory and falling time
  for (std::size_t k = points.size(); k-- > 0;)
    if (points[k].fits || !some_fit) order.push_back(k);
  return order;
}

Expected<std::vector<std::optional<NearestPlan>>> nearest_plans(std::span<const ExportFormat* const> engines,
                                                                std::span<const std::size_t> order,
                                                                const OpenPlans& open, const RunContext& context) {
  constexpr std::size_t kAtOnce = 64;
  std::vector<std::optional<NearestPlan>> nearest(engines.size());
  std::size_t left = engines.size();
  for (std::size_t begin = 0; begin < order.size() && left > 0; begin += kAtOnce) {
    const auto some = order.subspan(begin, std::min(kAtOnce, order.size() - begin));
    const auto result = open(some);
    if (!result) return result.error();
    for (std::size_t i = 0; i < some.size() && left > 0; ++i) {
      if (context.cancelled()) return cancelled_error();
      context.report("plans", double(begin + i) / double(order.size()));
      const PlanKind kind = (*result)->plans->kind(some[i]);
      if (kind != PlanKind::sharding && kind != PlanKind::pipeline) continue;
      const AnyPlan plan = (*result)->plans->plan(some[i]);
      for (std::size_t e = 0; e < engines.size(); ++e) {
        if (nearest[e] || !engines[e]->accepts(kind)) continue;
        auto file = engines[e]->engine(*(*result)->scenario, *std::get<PlanPtr>(plan));
        if (!file) continue;
        nearest[e] = NearestPlan{some[i], std::move(*file)};
        --left;
      }
    }
  }
  return nearest;
}

std::optional<EngineFile> offered_split(const ExportFormat& engine, const Result& split, bool some_fit) {
  if ((some_fit && !split.points.front().fits) || !engine.accepts(split.plans->kind(0))) return {};
  auto file = engine.engine(*split.scenario, split.plans->sharding(0));
  return file ? std::optional(std::move(*file)) : std::nullopt;
}

std::string words_beside(const ResultPoint& taken, const ResultPoint& asked) {
  const double slower = taken.time_s / asked.time_s - 1;
  const std::int64_t more = taken.memory_bytes - asked.memory_bytes;
  constexpr double kAlike = 5e-4;  // what one decimal of a per cent does not show
  const std::string time = std::abs(slower) < kAlike
                               ? std::string("as fast")
                               : fmt::format("{:.1f} % {}", 100 * std::abs(slower), slower < 0 ? "faster" : "slower");
  return time + ", " +
         (more == 0 ? std::string("as much memory")
                    : fmt::format("{} {}", format_bytes(std::abs(more)), more < 0 ? "less" : "more"));
}

}  // namespace turnpoint
