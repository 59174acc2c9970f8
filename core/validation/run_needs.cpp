// SPDX-License-Identifier: Apache-2.0
#include "core/validation/run_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/base/machine_memory.h"
#include "core/base/text.h"
#include "core/hardware/probe_local.h"
#include "core/plan/ratio_evaluator.h"
#include "core/plan/reprice.h"
#include "core/validation/compare.h"
#include "core/validation/placement_step.h"

namespace turnpoint {

namespace {

constexpr int kLeastSteps = 3;  ///< that the probe times, whatever the budget

/// The scenario on cores of this machine, as many as the plan has devices.
Scenario on_host(const Scenario& scenario, const Cluster& host) {
  auto cluster = std::make_shared<Cluster>(host);
  cluster->nodes = scenario.cluster->nodes;
  cluster->devices_per_node = scenario.cluster->devices_per_node;
  cluster->groups.clear();
  cluster->links[kInterNode] = host.links[kIntraNode];
  cluster->pods = scenario.cluster->pods;  // so that the mesh is the plan's
  for (PodLevel& level : cluster->pods) level.link = host.links[kIntraNode];
  Scenario here = scenario;
  here.cluster = std::move(cluster);
  here.settings.factors = WhatIf();
  return here;
}

Error no_room(std::string what, std::string hint) {
  Error error = usage_error(std::move(what));
  error.hint = std::move(hint);
  return error;
}

void set_times(RunNeeds& needs, double step_s, const StepChoice& choice) {
  needs.step_s = step_s;
  needs.least_s = step_s * (choice.warm_up + std::min(choice.steps, kLeastSteps));
}

void set_proof(RunNeeds& needs, const Model& model, const Plan& plan, const StepChoice& choice, const HostRoom& host) {
  // Whether the probe has a library is not known here: with one it proves more, and room is kept for that.
  const bool in_parts = plan.pipeline && plan.pipeline->micro_batch;
  const ProofNeeds proof = proof_needs(in_parts ? *plan.pipeline->micro_batch : model, plan, {host.cores, true},
                                       in_parts ? plan.pipeline->micro_batches : 1);
  if (choice.prove && proof.affordable(choice.budget_s, host.memory_bytes)) needs.proof_bytes = proof.bytes;
}

std::string bytes_text(double bytes) { return format_bytes(static_cast<std::int64_t>(std::min(bytes, 4e18))); }

}  // namespace

bool is_preset(const std::string& hardware) {
  const auto parts = split(hardware, '+');
  if (std::all_of(parts.begin(), parts.end(), [](std::string_view part) { return part.starts_with("local"); }))
    return false;
  return parts.size() > 1 || cluster_preset(hardware).has_value();
}

HostRoom this_host() {
  HostRoom room;
  room.memory_bytes = machine_memory().available;
  room.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (auto local = local_hardware()) room.hardware = *local;
  return room;
}

Expected<RunNeeds> run_needs(const Scenario& scenario, const Plan& plan, const StepChoice& choice,
                             const HostRoom& host) {
  RunNeeds needs;
  Scenario here = scenario;
  here.settings.accounting = Accounting::full;
  Plan priced = plan;
  if (is_preset(scenario.hardware) && host.hardware) here = on_host(here, *host.hardware);
  const bool again = here.cluster != scenario.cluster || scenario.settings.accounting != Accounting::full;
  if (again) {
    auto anew = repriced(here, plan);
    if (!anew) return anew.error();
    priced = std::move(*anew);
  }
  const bool slice = choice.mode == StepMode::slice;
  const int ranks = slice ? 1 : plan.mesh.devices();
  const double turns = std::max(1.0, static_cast<double>(ranks) / host.cores);
  // The way to the host and back is not made here: both are one memory.
  CostBreakdown cost = priced.cost;
  cost[NetworkPart::offload] = 0;
  set_times(needs, (slice ? cost.compute_s() : cost.time_s()) * turns, choice);
  const auto peak = serial_peak(here, priced);
  if (!peak) return peak.error();
  needs.ranks_bytes = static_cast<double>(*peak) * ranks;
  if (!slice) set_proof(needs, *scenario.model, plan, choice, host);
  return needs;
}

Expected<RunNeeds> run_needs(const Scenario& scenario, const PlacementPlan& plan, const StepChoice& choice,
                             const HostRoom& host) {
  const PlacementPlan* priced = &plan;
  PlacementPlanPtr again;
  if (is_preset(scenario.hardware) && host.hardware) {
    auto anew = placed_again(on_host(scenario, *host.hardware), plan);
    if (!anew) return anew.error();
    again = std::move(*anew);
    priced = again.get();
  }
  RunNeeds needs;
  // Ranks that take turns: at worst one core does the work of all that share it, waiting not counted.
  double work = 0;
  for (const double busy : priced->busy_s) work += busy;
  set_times(needs, std::max(priced->makespan_s, work / host.cores), choice);
  for (const std::int64_t peak : priced->peak_bytes) needs.ranks_bytes += static_cast<double>(peak);
  set_proof(needs, *scenario.model, unsplit_plan(*scenario.model), choice, host);
  return needs;
}

Expected<RunNeeds> run_needs(const Scenario& scenario, const RatioPlan& plan, const StepChoice& choice,
                             const HostRoom& host) {
  const RatioPlan* priced = &plan;
  Expected<RatioPlan> again = plan;
  if (is_preset(scenario.hardware) && host.hardware) {
    again = evaluate_ratio_plan(on_host(scenario, *host.hardware), plan);
    if (!again) return again.error();
    priced = &*again;
  }
  RunNeeds needs;
  const double slowest = choice.slow.empty() ? 1 : *std::max_element(choice.slow.begin(), choice.slow.end());
  const double turns = std::max(1.0, static_cast<double>(plan.devices()) / host.cores);
  set_times(needs, (priced->cost.compute_s() * slowest + priced->cost.network_s()) * turns, choice);
  for (const std::int64_t bytes : priced->device_memory) needs.ranks_bytes += static_cast<double>(bytes);
  set_proof(needs, *scenario.model, unsplit_plan(*scenario.model), choice, host);
  return needs;
}

Expected<RunNeeds> run_needs(const Scenario& scenario, const AnyPlan& plan, const StepChoice& choice,
                             const HostRoom& host) {
  return visit_plan(
      plan, [&](const Plan& one) { return run_needs(scenario, one, choice, host); },
      [&](const RatioPlan& one) { return run_needs(scenario, one, choice, host); },
      [&](const PlacementPlan& one) { return run_needs(scenario, one, choice, host); });
}

Expected<void> check_room(const RunNeeds& needs, const StepChoice& choice, const HostRoom& host) {
  if (choice.backend != ProbeBackend::cpu) return {};
  const auto there = static_cast<double>(host.memory_bytes);
  if (there > 0 && needs.bytes() > there)
    return no_room(fmt::format("the run needs about {} of memory, and {} can be had on this machine now",
                               bytes_text(needs.bytes()), bytes_text(there)),
                   "take a smaller model, batch or sequence, or a plan that keeps less");
  if (needs.least_s <= choice.budget_s) return {};
  return no_room(
      fmt::format("a step is predicted to take {} on this machine, {} to warm up and {} to time at least {}, and "
                  "the budget is {}",
                  format_seconds(needs.step_s),
                  choice.warm_up == 1 ? "1 step" : fmt::format("{} steps", choice.warm_up),
                  std::min(choice.steps, kLeastSteps), format_seconds(needs.least_s), format_seconds(choice.budget_s)),
      fmt::format("take a smaller model, batch or sequence, or give a budget of {} s (--budget)",
                  std::ceil(needs.least_s)));
}

}  // namespace turnpoint
