// SPDX-License-Identifier: Apache-2.0
#include "app/cli/search_objective.h"

#include <fmt/format.h>
#include <chrono>

#include "app/cli/answers.h"
#include "app/cli/commands.h"
#include "app/cli/written_results.h"
#include "core/base/text.h"
#include "core/schedule/simulated_points.h"
#include "core/search/largest_batch.h"

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
    line += fmt::format("{} with {}", format_seconds(point.time_s), memory_words(point));
  else
    line +=
        fmt::format("does not fit {}, needs {}", format_bytes(result.scenario->memory_limit()), memory_words(point));
  if (result.objective == to_string(Objective::largest_batch))
    line += fmt::format(", batch {}", result.scenario->settings.batch);
  if (result.samples_per_second) line += fmt::format(", {:.4g} samples/s", *result.samples_per_second);
  if (result.speed_up) line += fmt::format(" (x{:.2f})", *result.speed_up);
  if (point.fits && result.gap && *result.gap > 0) line += fmt::format(", gap {:.2f} %", *result.gap * 100);
  if (point.fits && result.price_per_iteration)
    line += fmt::format(", price of 1000 iterations {:.4g}", *result.price_per_iteration * 1000);
  std::fprintf(stderr, "%s (search %.2f s)\n", line.c_str(), result.search_s);
}

/// Whether an objective answers with a result for every count of devices.
bool by_count(Objective objective) { return objective == Objective::profile || objective == Objective::largest_batch; }

Expected<std::vector<ResultPtr>> search_with(Objective objective, const Contender& method, const OpenedScenario& opened,
                                             const RunContext& context) {
  const ScenarioPtr& scenario = opened.scenario;
  if (by_count(objective)) {
    const auto counts = doubling_counts(*scenario->cluster);
    const auto say = [](const ResultPtr& found) { say_found(*found); };
    return objective == Objective::profile ? profile(method, scenario, counts, context, say)
                                           : largest_batches(method, *opened.source, scenario, counts, context, say);
  }
  const auto one = objective == Objective::mini_time ? mini_time(method, scenario, context)
                                                     : mini_parallelism(method, scenario, context);
  if (!one) return one.error();
  say_found(**one);
  return std::vector<ResultPtr>{*one};
}

}  // namespace

int run_objective(Objective objective, const std::vector<Contender>& methods, const OpenedScenario& opened,
                  RunContext context, const WrittenParts& parts, const std::string& out) {
  const ScenarioPtr& scenario = opened.scenario;
  Answers answers(scenario, objective, methods.size());
  for (const Contender& method : methods) {
    if (answers.left_out_by_stop(method.name)) continue;
    // Other counts of devices may suit a method that this one does not.
    const auto reason = objective == Objective::mini_time ? method.refuses(*scenario) : std::string();
    if (!reason.empty() && methods.size() > 1) {
      answers.left_out(method.name, reason);
      continue;
    }
    const auto start = std::chrono::steady_clock::now();
    auto found = search_with(objective, method, opened, context);
    if (!found) {
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (const auto ended = answers.failed(method.name, found.error(), spent.count())) return *ended;
      continue;
    }
    answers.look_for_stop(context);
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
  const bool single = !by_count(objective) && methods.size() == 1;
  const int written = write_found(out, answers.results(), !single, parts.plans, context);
  return written != kDone ? written : answers.exit_code(true);
}

}  // namespace turnpoint::cli
