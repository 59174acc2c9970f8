// SPDX-License-Identifier: Apache-2.0
#include "app/cli/search_objective.h"

#include <fmt/format.h>
#include <algorithm>

#include "app/cli/commands.h"
#include "app/cli/written_results.h"
#include "core/base/text.h"
#include "core/plan/simulated_points.h"

namespace turnpoint::cli {

std::string full_method(const Result& result) {
  return result.method_options.empty() ? result.method : result.method + ':' + result.method_options;
}

namespace {

void say_found(const Result& result) {
  if (result.points.empty()) return;
  const ResultPoint& point = result.points.front();
  const int devices = result.scenario->cluster->devices();
  std::string line = fmt::format("{} on {} device{}: ", full_method(result), devices, devices == 1 ? "" : "s");
  if (point.fits)
    line += fmt::format("{} with {}", format_seconds(point.time_s), format_bytes(point.memory_bytes));
  else
    line += fmt::format("does not fit {}, needs {}", format_bytes(result.scenario->memory_limit()),
                        format_bytes(point.memory_bytes));
  if (point.fits && result.gap && *result.gap > 0) line += fmt::format(", gap {:.2f} %", *result.gap * 100);
  if (point.fits && result.price_per_iteration)
    line += fmt::format(", price of 1000 iterations {:.4g}", *result.price_per_iteration * 1000);
  std::fprintf(stderr, "%s (search %.2f s)\n", line.c_str(), result.search_s);
}

Expected<std::vector<ResultPtr>> search_with(Objective objective, const Contender& method, const ScenarioPtr& scenario,
                                             const RunContext& context) {
  if (objective == Objective::profile) {
    const auto counts = doubling_counts(*scenario->cluster);
    return profile(method, scenario, counts, context, [](const ResultPtr& found) { say_found(*found); });
  }
  const auto one = objective == Objective::mini_time ? mini_time(method, scenario, context)
                                                     : mini_parallelism(method, scenario, context);
  if (!one) return one.error();
  say_found(**one);
  return std::vector<ResultPtr>{*one};
}

}  // namespace

int run_objective(Objective objective, const std::vector<Contender>& methods, const ScenarioPtr& scenario,
                  const RunContext& context, const WrittenParts& parts, const std::string& out) {
  std::vector<ResultPtr> results;
  for (const Contender& method : methods) {
    auto found = search_with(objective, method, scenario, context);
    if (!found) return report(found.error());
    for (ResultPtr& result : *found) {
      if (parts.simulated) {
        const auto simulated = with_simulated_points(result, context);
        if (!simulated) return report(simulated.error());
        result = *simulated;
      }
      results.push_back(result);
    }
  }
  const bool single = objective != Objective::profile && results.size() == 1;
  if (const int written = write_found(out, results, !single, parts.plans, context); written != kDone) return written;
  const bool any_fits =
      std::any_of(results.begin(), results.end(), [](const auto& r) { return r->fastest_that_fits().has_value(); });
  if (any_fits) return kDone;
  const auto least = std::min_element(results.begin(), results.end(), [](const auto& a, const auto& b) {
    return a->points.front().memory_bytes < b->points.front().memory_bytes;
  });
  std::fprintf(stderr, "no plan fits %s; the least any needs is %s\n", format_bytes(scenario->memory_limit()).c_str(),
               format_bytes((*least)->points.front().memory_bytes).c_str());
  return kInfeasible;
}

}  // namespace turnpoint::cli
