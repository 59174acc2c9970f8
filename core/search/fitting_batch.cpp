// SPDX-License-Identifier: Apache-2.0
#include "core/search/fitting_batch.h"

#include "core/schedule/fitting.h"
#include "core/search/registry.h"

namespace turnpoint {

namespace {

Expected<bool> fits_with(const ScenarioPtr& scenario, const RunContext& context) {
  auto searcher = make_searcher(default_method(), "micro-batches=1");
  if (!searcher) return searcher.error();
  auto result = (*searcher)->run(scenario, SearchPass::coarse, context);
  if (!result) return result.error();
  // The plain sum is nearly always below the peak: what does not fit by it is not simulated.
  if (!(*result)->fastest_that_fits() || !can_judge_fits(**result)) return (*result)->fastest_that_fits().has_value();
  const auto judged = judge_fits(*result, context);
  if (!judged) return judged.error();
  return (*judged)->fastest_that_fits().has_value();
}

}  // namespace

Expected<std::optional<std::int64_t>> fitting_batch(const ModelSource& source, const ScenarioPtr& scenario,
                                                    const RunContext& context) {
  if (scenario->tasks) return std::optional<std::int64_t>();
  for (std::int64_t batch = scenario->settings.batch / 2; batch >= 1; batch /= 2) {
    const auto model = source.bind({batch, scenario->settings.sequence});
    if (!model) continue;
    auto smaller = std::make_shared<Scenario>(*scenario);
    smaller->model = *model;
    smaller->settings.batch = batch;
    const auto fits = fits_with(smaller, context);
    if (!fits) return fits.error();
    if (*fits) return std::optional(batch);
  }
  return std::optional<std::int64_t>();
}

}  // namespace turnpoint
