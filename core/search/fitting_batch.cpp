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
  std::int64_t good = 0, bad = 0;  // the longest that fits and the shortest that does not, of those tried
  bool taken = true;               // the model takes `bad`
  const auto try_out = [&](std::int64_t sequence) -> Expected<bool> {
    const auto other = with_sequence(source, scenario, sequence);
    const bool takes = other || other.error().code != ErrorCode::bad_input;
    if (takes && !other) return other.error();
    const Expected<bool> fits = takes ? fits_whole(*other, context) : Expected<bool>(false);
    if (!fits) return fits;
    if (*fits)
      good = sequence;
    else
      bad = sequence, taken = takes;
    return fits;
  };
  const std::int64_t own = scenario->model->sequence;
  for (std::int64_t at = own; at == own || (at >= Longest::kShortest && at <= Longest::kLongest);) {
    context.report("longest sequence");
    const auto fits = try_out(at);
    if (!fits) return fits.error();
    if (good > 0 && bad > 0) break;
    at = *fits ? 2 * at : at / 2;
  }
  if (good == 0) return std::optional<Longest>();
  for (int round = 0; round < 3 && bad - good > 1; ++round) {
    context.report("longest sequence", (round + 1) / 4.0);
    if (const auto fits = try_out(good + (bad - good) / 2); !fits) return fits.error();
  }
  using End = Longest::End;
  return std::optional(Longest{good, bad == 0 ? End::not_tried : taken ? End::too_large : End::not_taken});
}

}  // namespace turnpoint
