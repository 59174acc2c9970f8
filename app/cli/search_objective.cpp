// SPDX-License-Identifier: Apache-2.0
#include "app/cli/search_objective.h"

#include <fmt/format.h>
#include <chrono>

#include "app/cli/answers.h"
#include "app/cli/commands.h"
#include "app/cli/written_results.h"
#include "core/base/text.h"
#include "core/schedule/simulated_points.h"

namespace turnpoint::cli {

std::string full_method(const Result& result) {
  return result.method_options.empty() ? result.method : result.method + ':' + result.method_options;
}

namespace {

void say_found(const Result& result) {
  const int devices = result.scenario->cluster->devices();
  for (const auto& note : result.notes)
    std::fprintf(stderr, "note: %s on %d device%s: %s\n", full_method(result).c_str(), devices, devices == 1 ? "" : "s",
                 note.c_str());
  if (result.points.empty()) return;
  const ResultPoint& point = result.points.front();
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
  Answers answers(scenario, objective, methods.size());
  for (const Contender& method : methods) {
    // Other counts of devices may suit a method that this one does not.
    const auto reason = objective == Objective::mini_time ? method.refuses(*scenario) : std::string();
    if (!reason.empty() && methods.size() > 1) {
      answers.left_out(method.name, reason);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    auto found = search_with(objective, method, scenario, context);
    if (!found) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (const auto ended = answers.failed(method.name, found.error(), spent.count())) return *ended;
      continue;
    }
    for (ResultPtr& result : *found) {
      if (parts.simulated && result->plans) {
        const auto simulated = with_simulated_points(result, context);
        if (!simulated) return report(simulated.error());
        result = *simulated;
      }
      answers.keep(result);
    }
  }
  if (const auto ended = answers.nothing_to_write()) return *ended;
  if (parts.table) {
    const int shown = show_found(answers.results(), context);
    return shown != kDone ? shown : answers.exit_code(true);
  }
  const bool single = objective != Objective::profile && methods.size() == 1;
  const int written = write_found(out, answers.results(), !single, parts.plans, context);
  return written != kDone ? written : answers.exit_code(true);
}

}  // namespace turnpoint::cli
