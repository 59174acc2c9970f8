// SPDX-License-Identifier: Apache-2.0
#include "core/search/fitting_batch.h"

#include "core/search/registry.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

/// The whole batch at once: peaks of many micro-batches take too long to simulate for each batch or length tried.
Expected<bool> fits_whole(const ScenarioPtr& scenario, const RunContext& context) {
  auto searcher = make_searcher(default_method(), "micro-batches=1");
  if (!searcher) return searcher.error();
  auto result = (*searcher)->run(scenario, SearchPass::coarse, context);
  if (!result) return result.error();
  const auto judged = judged_by_peaks(*result, context);
  if (!judged) return judged.error();
  return (*judged)->fastest_that_fits().has_value();
}

}  // namespace

Expected<ResultPtr> judged_by_peaks(const ResultPtr& result, const RunContext& context, std::size_t until_any_fits) {
  if (!can_judge_fits(*result)) return result;
  // Devices of a ratio plan have memory of their own, so that no one limit says anything.
  if (result->plans->kind(0) != PlanKind::ratio && static_cast<double>(result->points.front().memory_bytes) >
                                                       2 * static_cast<double>(result->scenario->memory_limit()))
    return result;
  return judge_fits(result, context, nullptr, until_any_fits);
}

Expected<std::optional<std::int64_t>> fitting_batch(const ModelSource& source, const ScenarioPtr& scenario,
                                                    const RunContext& context) {
  if (scenario->tasks) return std::optional<std::int64_t>();
  for (std::int64_t batch = scenario->settings.batch / 2; batch >= 1; batch /= 2) {
    const auto smaller = with_batch(source, scenario, batch);
    if (!smaller) continue;
    const auto fits = fits_whole(*smaller, context);
    if (!fits) return fits.error();
    if (*fits) return std::optional(batch);
  }
  return std::optional<std::int64_t>();
}

Expected<std::optional<LongestSequence>> longest_sequence(const ModelSource& source, const ScenarioPtr& scenario,
                                                          const RunContext& context) {
  if (scenario->tasks || scenario->model->sequence <= 0)
    return usage_error("has no sequence to choose", source.source());
  using Longest = LongestSequence;
  bool taken = true;  // by the model
  const auto fits = [&](std::int64_t sequence) -> Expected<bool> {
    const auto other = with_sequence(source, scenario, sequence);
    taken = other || other.error().code != ErrorCode::bad_input;
    if (!taken) return false;
    if (!other) return other.error();
    return fits_whole(*other, context);
  };
  const auto looked_at = [](std::int64_t sequence) {
    return sequence >= Longest::kShortest && sequence <= Longest::kLongest;
  };
  std::int64_t good = 0, bad = 0;
  bool model_ends = false;
  for (std::int64_t at = scenario->model->sequence; at == scenario->model->sequence || looked_at(at);) {
    context.report("longest sequence");
    const auto found = fits(at);
    if (!found) return found.error();
    if (*found)
      good = at;
    else
      bad = at, model_ends = !taken;
    if (good > 0 && bad > 0) break;
    at = *found ? 2 * at : at / 2;
  }
  if (good == 0) return std::optional<Longest>();
  for (int round = 0; round < 3 && bad - good > 1; ++round) {
    context.report("longest sequence", (round + 1) / 4.0);
    const std::int64_t middle = good + (bad - good) / 2;
    const auto found = fits(middle);
    if (!found) return found.error();
    if (*found)
      good = middle;
    else
      bad = middle, model_ends = !taken;
  }
  return std::optional(Longest{good, bad == 0     ? Longest::End::not_tried
                                     : model_ends ? Longest::End::not_taken
                                                  : Longest::End::too_large});
}

}  // namespace turnpoint
