// SPDX-License-Identifier: Apache-2.0
// That a placed step computes what the whole model on one rank computes: nothing else, and nothing less.
#include <algorithm>

#include "gpu_probe/step/placement_links.h"
#include "gpu_probe/step/placement_run.h"
#include "gpu_probe/step/whole_step.h"

namespace turnpoint::step {

namespace {

constexpr int kMostPlacedRanks = 8;

}  // namespace

Expected<void> check_placement_job(const StepJob& job, int first, int count) {
  if (count > kMostPlacedRanks)
    return usage_error("a placement on " + std::to_string(count) + " devices, and at most " +
                           std::to_string(kMostPlacedRanks) + " ranks of one host are carried out here",
                       job.model->name);
  return check_room(job, least_placed_bytes(job, first, count));
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

namespace {

Expected<StepNumerics> compared_to_whole(const StepJob& job, const StepRun& run, const Expected<StepRun>& whole) {
  if (!whole) return whole.error();
  const auto compared = compare(*job.model, job.plan, run, *whole);
  if (!compared) return compared.error();
  if (auto all = check_all_computed(job, *compared, *whole); !all) return all.error();
  return numerics_of(*compared);
}

StepOptions recording(const StepJob& job) {
  StepOptions options = options_of(job);
  options.record = options.one_step = true;
  return options;
}

}  // namespace

Expected<StepNumerics> prove_placement(const StepJob& job) {
  const StepOptions options = recording(job);
  WholeStep whole([&] { return run_step(in_double(), *job.model, job.plan, options); });
  const auto run = run_placement(in_double(), job, options);
  if (!run) return run.error();
  return compared_to_whole(job, run->step, whole.get());
}

Expected<std::optional<StepNumerics>> prove_placement(const StepJob& job, const PlacementCarriers& carriers) {
  const StepOptions options = recording(job);
  const auto run = run_placement_apart(in_double(), job, options, carriers);
  if (!run) return run.error();
  if (carriers.collectives.rank() != 0) return std::optional<StepNumerics>();
  const auto numerics = compared_to_whole(job, run->step, run_step(in_double(), *job.model, job.plan, options));
  if (numerics) return std::optional(*numerics);
  carriers.transport.abort();
  return numerics.error();
}

}  // namespace turnpoint::step
