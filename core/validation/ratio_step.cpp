// SPDX-License-Identifier: Apache-2.0
#include "core/validation/ratio_step.h"

#include <fmt/format.h>

namespace turnpoint {

namespace {

Error not_as_ratio(std::string what, std::string hint) {
  Error error = usage_error(std::move(what));
  error.hint = std::move(hint);
  return error;
}

StepRatio without_costs(const RatioPlan& plan) {
  StepRatio ratio;
  ratio.order = plan.order;
  for (const RatioPlan::Part& part : plan.parts) ratio.parts.push_back({part.devices, part.halves});
  for (const RatioPlan::Cut& cut : plan.cuts) {
    StepRatio::Cut& made = ratio.cuts.emplace_back();
    made.part = cut.part;
    made.next = cut.next;
    for (const RatioPlan::Share& share : cut.share) made.share.push_back({share.loop, share.first});
    made.updates = cut.updates;
  }
  if (!plan.reruns.empty()) ratio.again.resize(plan.order.size());
  for (const RatioPlan::Rerun& rerun : plan.reruns)
    for (const std::uint32_t device : rerun.devices) ratio.again[device] = rerun.operators;
  return ratio;
}

}  // namespace

Expected<StepJob> step_job_of(const Scenario& scenario, const RatioPlan& plan, const StepChoice& choice) {
  if (choice.mode == StepMode::slice)
    return not_as_ratio("one device's part alone cannot be run of a ratio plan, whose devices have unlike parts",
                        "run all ranks");
  if (choice.backend == ProbeBackend::cuda)
    return not_as_ratio("a ratio plan runs on CPU ranks alone so far: ranks with GPUs have equal parts",
                        "leave --backend out");
  if (choice.slow.size() > static_cast<std::size_t>(plan.devices()))
    return not_as_ratio(
        fmt::format("rank {} is to be slower, and there are ranks 0 to {}", choice.slow.size() - 1, plan.devices() - 1),
        "name a rank of the plan");
  auto job = step_job_of(scenario, unsplit_plan(*scenario.model), choice, plan.devices(), true);
  if (!job) return job.error();
  job->ratio = without_costs(plan);
  job->slow = choice.slow;
  return job;
}

}  // namespace turnpoint
