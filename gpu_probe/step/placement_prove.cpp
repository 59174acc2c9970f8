// SPDX-License-Identifier: Apache-2.0
// That a placed step computes what the whole model on one rank computes: nothing else, and nothing less.
#include <algorithm>

#include "gpu_probe/step/placement_run.h"

namespace turnpoint::step {

namespace {

constexpr std::uint32_t kMostPlacedRanks = 8;

}  // namespace

Expected<void> check_placement_job(const StepJob& job) {
  const std::uint32_t devices = job.placement->devices;
  if (devices > kMostPlacedRanks)
    return usage_error("a placement on " + std::to_string(devices) + " devices, and at most " +
                           std::to_string(kMostPlacedRanks) + " ranks are carried out here",
                       job.model->name);
  // Every parameter is there once, wherever it lies.
  return check_job(job, 1);
}

Expected<void> check_all_computed(const StepJob& job, const Comparison& compared, const StepRun& whole) {
  // Views are no tasks; everything else that the whole step has must be there.
  std::array<std::int64_t, kComparedKinds> expected{};
  for (const auto& recorded : whole.ranks.front().recorded)
    if (!job.model->operators[recorded.op].is_view())
      expected[static_cast<std::size_t>(recorded.kind)] += static_cast<std::int64_t>(recorded.data.size());
  for (std::size_t kind = 0; kind < expected.size(); ++kind)
    if (compared.elements[kind] != expected[kind])
      return bad_input(std::string("placement: of each ") + to_string(static_cast<Compared>(kind)) + " " +
                           std::to_string(compared.elements[kind]) + " elements were computed, not " +
                           std::to_string(expected[kind]),
                       job.model->name);
  return {};
}

Expected<StepNumerics> prove_placement(const StepJob& job) {
  StepOptions options = options_of(job);
  options.record = true;
  const auto run = in_double::run_placement(job, options);
  if (!run) return run.error();
  const auto whole = in_double::run_step(*job.model, job.plan, options);
  if (!whole) return whole.error();
  const auto compared = compare(*job.model, job.plan, run->step, *whole);
  if (!compared) return compared.error();
  if (auto all = check_all_computed(job, *compared, *whole); !all) return all.error();
  return numerics_of(*compared);
}

}  // namespace turnpoint::step
