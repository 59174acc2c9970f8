// SPDX-License-Identifier: Apache-2.0
// Step jobs of small plans, and what must be true of their measurements.
#pragma once

#include "core/cost/operator_cost.h"
#include "core/probe/step_client.h"
#include "core/search/method/method.h"
#include "search/scenarios.h"

namespace turnpoint::test {

inline StepJob job_of(const ScenarioPtr& scenario, const Plan& plan) {
  StepJob job;
  job.model = scenario->model;
  job.plan = plan;
  job.backend = ProbeBackend::cpu;
  const ParameterBytes bytes = parameter_bytes(scenario->settings, Accounting::full);
  job.weight_bytes = bytes.weight, job.gradient_bytes = bytes.gradient, job.optimizer_bytes = bytes.optimizer;
  job.optimizer = to_string(scenario->settings.optimizer);
  job.warm_up = 1, job.steps = 3, job.budget_s = 20;
  return job;
}

inline StepJob long_job() {
  const auto scenario = scenario_on(builtin("lenet", 64), "v100-16gb-1x2");
  const auto result = run("data-parallel", scenario);
  StepJob job = job_of(scenario, (*result)->plans->sharding(0));
  job.prove = false;
  job.steps = 100'000;
  job.budget_s = 600;
  return job;
}

/// What is wrong with a measurement of this plan; empty: nothing.
inline std::string fault(const Scenario& scenario, const StepJob& job, const StepMeasurement& m) {
  const Plan& plan = job.plan;
  const Model& model = *scenario.model;
  if (m.backend != "cpu" || m.ranks != plan.mesh.devices() || m.step.samples != 3 || m.step.min_s <= 0) return "head";
  if (!m.numerics || m.numerics->loss_error > m.numerics->tolerance ||
      m.numerics->gradient_error > m.numerics->tolerance || m.numerics->activation_error > m.numerics->tolerance ||
      m.numerics->update_error > 1e-7 || m.numerics->precision != "fp64")
    return "numerics" + (m.numerics ? " at " + m.numerics->where : "");
  // Bytes: every step of the plan once, and received what was planned.
  std::size_t listed = 0;
  double bytes = 0;
  const auto count = [&](const std::vector<ReshardStep>& steps) {
    listed += steps.size();
    for (const auto& step : steps) bytes += step.bytes;
  };
  for (const auto& reshard : plan.reshards) count(reshard.forward), count(reshard.backward());
  for (const auto& op : plan.operators) count(all_steps(op.parameters));
  if (m.exchanges.size() != listed)
    return std::to_string(m.exchanges.size()) + " exchanges of " + std::to_string(listed);
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max({a, b, 1.0}); };
  if (!near(m.planned_bytes, bytes) || !near(m.received_bytes, bytes))
    return "received " + std::to_string(m.received_bytes) + " of " + std::to_string(bytes) + " bytes";
  for (const auto& exchange : m.exchanges)
    if (!near(exchange.planned_bytes, exchange.received_bytes) || !exchange.time || exchange.time->min_s < 0)
      return "an exchange received " + std::to_string(exchange.received_bytes);
  // Memory by kind, and the most of them together.
  CostBreakdown cost = plan.cost;
  const auto kept = cost[MemoryPart::activations] + cost[MemoryPart::copies];
  if (m.memory.parameters != cost[MemoryPart::parameters] || m.memory.gradients != cost[MemoryPart::gradients] ||
      m.memory.optimizer != cost[MemoryPart::optimizer] || m.memory.kept != kept)
    return "memory " + std::to_string(m.memory.parameters) + " + " + std::to_string(m.memory.gradients) + " + " +
           std::to_string(m.memory.optimizer) + " + " + std::to_string(m.memory.kept) + ", planned " +
           std::to_string(cost[MemoryPart::parameters]) + " + " + std::to_string(cost[MemoryPart::gradients]) + " + " +
           std::to_string(cost[MemoryPart::optimizer]) + " + " + std::to_string(kept);
  // Kept copies go while gradients come: together they never reach the plan's sum, which knows no liveness, but all
  // copies are there behind forward, and all gradients before the update.
  const std::int64_t least = m.memory.parameters + m.memory.optimizer + std::max(m.memory.gradients, m.memory.kept);
  if (m.memory.counted_peak > cost.memory_bytes() || m.memory.counted_peak < least)
    return "counted peak " + std::to_string(m.memory.counted_peak) + ", not from " + std::to_string(least) + " to " +
           std::to_string(cost.memory_bytes());
  if (m.memory.peak < m.memory.parameters) return "peak";
  // Every operator has been timed in the phases that it has.
  double phases = 0;
  std::vector<int> seen(model.operators.size() * 4, 0);
  for (const auto& phase : m.phases) {
    ++seen[phase.op.index * 4 + std::size_t(phase.phase)];
    phases += phase.time.min_s;
    if (phase.time.samples != 3) return "samples";
  }
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    CostBreakdown own = plan.operators[i].cost;
    if (op.kind != OperatorKind::input && seen[i * 4] != 1) return op.name + " was not timed";
    if (own[ComputePart::recompute] > 0 && seen[i * 4 + 2] != 1) return op.name + " did not run again";
    if (*std::max_element(seen.begin() + std::ptrdiff_t(i) * 4, seen.begin() + std::ptrdiff_t(i) * 4 + 4) > 1)
      return op.name + " twice";
  }
  if (phases > m.step.q3_s * 1.05 * m.ranks) return "operators take longer than steps";
  return {};
}

}  // namespace turnpoint::test
