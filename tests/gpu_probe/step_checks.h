// SPDX-License-Identifier: Apache-2.0
// Runs a plan's step and the unpartitioned one and says in one sentence what differs.
#pragma once

#include <cmath>
#include <string>

#include "core/cost/operator_cost.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "gpu_probe/step/run.h"

namespace turnpoint::test {

inline step::StepOptions step_options(const Settings& settings, std::uint64_t seed = 1) {
  step::StepOptions options;
  options.seed = seed;
  const ParameterBytes bytes = parameter_bytes(settings, Accounting::full);
  options.floating_bytes = settings.precision == Precision::fp32 ? 4 : 2;
  options.weight_bytes = bytes.weight;
  options.gradient_bytes = bytes.gradient;
  options.optimizer_bytes = bytes.optimizer;
  options.record = true;
  return options;
}

struct StepStatistics {
  int plans = 0, collectives = 0, reruns = 0, idle_repeats = 0;
  double worst = 0, planned_bytes = 0, inside_bytes = 0;
  double most_momentary = 0;  ///< bytes at the peak over the plan's memory
};

/// Largest relative difference that rounding explains: sums of up to some thousand terms a few operators deep, each
/// off by 1.1e-16 of its largest term.
inline constexpr double kRounding = 1e-10;

/// Empty if the plan's step computes what the unpartitioned one computes, sends what the plan says and holds what the
/// plan says. Of a plan in micro-batches, through all of them.
inline std::string step_fault(const Scenario& scenario, const Plan& given, StepStatistics* statistics = nullptr) {
  const int micro_batches = given.micro_batches();
  const Model& model = given.pipeline ? *given.pipeline->micro_batch : *scenario.model;
  Plan plan = given;
  plan.pipeline.reset();
  auto options = step_options(scenario.settings);
  options.micro_batches = micro_batches;
  const auto run = step::run_step(step::in_double(), model, plan, options);
  if (!run) return run.error().message();
  const auto whole = step::run_whole(step::in_double(), model, plan, options);
  if (!whole) return "unpartitioned: " + whole.error().message();
  const auto compared = step::compare(model, plan, *run, *whole);
  if (!compared) return compared.error().message();
  if (!(compared->largest() < kRounding))
    return "differs by " + std::to_string(compared->largest()) + " at " + compared->where + " (loss " +
           std::to_string(run->loss) + " and " + std::to_string(whole->loss) + ")";
  std::string where;
  if (step::traffic_error(*run, &where) > 1e-12) return "bytes: " + where;
  // Nothing that the plan lists was left out.
  double listed = 0, executed = 0;
  const auto count = [&](const std::vector<ReshardStep>& steps, const std::vector<int>& times) {
    for (std::size_t i = 0; i < steps.size(); ++i)
      listed += (times.empty() ? micro_batches : times[i]) * steps[i].bytes;
  };
  for (const auto& reshard : plan.reshards) count(reshard.forward, {}), count(reshard.backward(), {});
  for (const auto& op : plan.operators)
    count(all_steps(op.parameters), times_an_iteration(op.parameters, op.choice.update, micro_batches));
  for (const auto& traffic : run->ranks.front().traffic) executed += traffic.planned_bytes;
  if (std::abs(listed - executed) > 1e-9 * std::max(listed, 1.0))
    return "the plan lists " + std::to_string(listed) + " bytes, " + std::to_string(executed) + " were moved";
  // Held: per kind, the largest rank is what the plan says.
  const auto most = [&](step::Held kind, const step::Ledger step::StepReport::*when) {
    std::int64_t bytes = 0;
    for (const auto& rank : run->ranks) bytes = std::max(bytes, (rank.*when)[kind]);
    return bytes;
  };
  const auto held = [&](const char* what, std::int64_t found, std::int64_t planned) {
    return found == planned
               ? std::string()
               : std::string(what) + ": holds " + std::to_string(found) + " bytes, planned " + std::to_string(planned);
  };
  using step::Held;
  using step::StepReport;
  CostBreakdown cost = plan.cost;
  for (const auto& fault :
       {held("parameters", most(Held::parameters, &StepReport::before_forward), cost[MemoryPart::parameters]),
        held("gradients", most(Held::gradients, &StepReport::after_backward), cost[MemoryPart::gradients]),
        held("optimizer state", most(Held::optimizer, &StepReport::before_forward), cost[MemoryPart::optimizer]),
        held("kept copies", most(Held::kept, &StepReport::after_forward),
             cost[MemoryPart::activations] + cost[MemoryPart::copies])})
    if (!fault.empty()) return fault;
  for (const auto& rank : run->ranks)
    if (rank.ledger[Held::kept] != 0) return "a copy is kept beyond the step";
  for (std::size_t i = 0; i < plan.operators.size(); ++i) {
    const int times = run->ranks.front().runs_again[i];
    CostBreakdown own = plan.operators[i].cost;
    if (times > 1 || (times == 1) != (own[ComputePart::recompute] > 0))
      return model.operators[OperatorId(i)].name + " ran again " + std::to_string(times) + " times, priced with " +
             std::to_string(own[ComputePart::recompute]) + " s";
  }
  for (const auto& rank : run->ranks)
    if (rank.unlisted_weight_bytes > 0)
      return std::to_string(rank.unlisted_weight_bytes) + " bytes of weights were fetched that the plan does not list";
  if (statistics) {
    ++statistics->plans;
    statistics->collectives += static_cast<int>(run->ranks.front().traffic.size());
    for (const int times : run->ranks.front().runs_again) statistics->reruns += times;
    statistics->idle_repeats += run->ranks.front().idle_repeats;
    statistics->worst = std::max(statistics->worst, compared->largest());
    statistics->planned_bytes += executed * double(run->ranks.size());
    for (const auto& rank : run->ranks) {
      statistics->inside_bytes += rank.inside_bytes;
      if (cost.memory_bytes() > 0)
        statistics->most_momentary =
            std::max(statistics->most_momentary, double(rank.ledger.peak) / double(cost.memory_bytes()));
    }
  }
  return {};
}

}  // namespace turnpoint::test
