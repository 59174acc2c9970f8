// SPDX-License-Identifier: Apache-2.0
#include "core/validation/placement_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/schedule/step_links.h"
#include "core/schedule/training_graph.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

namespace {

Error cannot_run(std::string what, std::string hint) {
  Error error = usage_error(std::move(what));
  error.hint = std::move(hint);
  return error;
}

/// Which part of its operator each task is: all of it, or one time step. The unrolled graph has the steps of an
/// operator in a row, those of the second direction behind those of the first (core/schedule/unrolling.h).
Expected<std::vector<StepPlacement::Task>> tasks_of(const Model& model, const PlacementPlan& plan) {
  std::map<std::pair<OperatorId, TaskRole>, std::vector<TaskIndex>> all;
  for (TaskIndex t = 0; t < plan.graph->task_count(); ++t) {
    all[{plan.operator_of[t], plan.role[t]}].push_back(t);
  }
  const StepLinks links(model, false);
  std::vector<StepPlacement::Task> tasks(plan.graph->task_count());
  for (const auto& [key, list] : all) {
    const auto& [op, role] = key;
    const StepwiseOperator* stepwise = list.size() > 1 ? links.find(op) : nullptr;
    if (list.size() > 1 && (!stepwise || std::int64_t(list.size()) != stepwise->steps * stepwise->cell.directions))
      return cannot_run(fmt::format("the placement has {} tasks for '{}', which are neither its time steps nor all of "
                                    "it: parts of time steps and micro-batches are not run one by one",
                                    list.size(), model.operators[op].name),
                        "place the model by one of the methods");
    for (std::size_t i = 0; i < list.size(); ++i) {
      StepPlacement::Task& task = tasks[list[i]] = {op, role, plan.placement.device[list[i]]};
      if (!stepwise) continue;
      task.step = std::int64_t(i) % stepwise->steps;
      task.direction = std::uint32_t(std::int64_t(i) / stepwise->steps);
    }
  }
  return tasks;
}

}  // namespace

Expected<StepJob> step_job_of(const Scenario& scenario, const PlacementPlan& plan, const StepChoice& choice) {
  if (scenario.tasks || plan.operator_of.size() != plan.graph->task_count() ||
      plan.role.size() != plan.operator_of.size())
    return cannot_run(
        "the placement is of a task graph that comes from no model: its tasks are names with times, and nothing says "
        "what "
        "they compute",
        "open the model itself and place that");
  if (choice.mode == StepMode::slice)
    return cannot_run(
        "one device's part alone cannot be run of a placement, whose tasks wait for those of other devices",
        "run all ranks");
  if (plan.made_with.micro_batches > 1)
    return cannot_run("the placement is of several micro-batches, whose tasks are run as whole batches only",
                      "place the model without micro-batches");
  if (plan.made_with.kept_gradients)
    return cannot_run(
        "the placement keeps the gradients of all time steps until the update; ranks add them as they come",
        "place the model without step-gradients=kept");
  auto tasks = tasks_of(*scenario.model, plan);
  if (!tasks) return tasks.error();
  auto job =
      step_job_of(scenario, unsplit_plan(*scenario.model), choice, static_cast<int>(plan.placement.devices), false);
  if (!job) return job.error();
  const auto simulation = simulate(*plan.graph, plan.placement);
  if (!simulation) return simulation.error();
  StepPlacement& placed = job->placement.emplace();
  placed.devices = plan.placement.devices;
  placed.tasks = std::move(*tasks);
  for (std::uint32_t d = 0; d < placed.devices; ++d) {
    const auto run = simulation->run_on(d);
    placed.order.emplace_back(run.begin(), run.end());
  }
  for (const SimulatedTransfer& transfer : simulation->transfers)
    placed.transfers.push_back({transfer.source, transfer.to, transfer.bytes});
  return job;
}

Expected<PlacementPlanPtr> placed_again(const Scenario& scenario, const PlacementPlan& plan) {
  auto made = training_graph_of_batch(scenario, plan.made_with);
  if (!made) return made.error();
  if (made->operator_of != plan.operator_of || made->role != plan.role)
    return usage_error("the placement is of another task graph than this model's");
  auto again = std::make_shared<PlacementPlan>(plan);
  again->graph = std::move(made->graph);
  // The order in which the simulator ran it is part of what is run.
  const auto before = simulate(*plan.graph, plan.placement);
  if (!before) return before.error();
  again->placement.order.clear();
  for (std::uint32_t d = 0; d < plan.placement.devices; ++d) {
    const auto run = before->run_on(d);
    again->placement.order.emplace_back(run.begin(), run.end());
  }
  const auto simulation = simulate(*again->graph, again->placement);
  if (!simulation) return simulation.error();
  again->makespan_s = simulation->makespan_s;
  again->busy_s.clear();
  again->peak_bytes.clear();
  for (const SimulatedDevice& device : simulation->devices) {
    again->busy_s.push_back(device.busy_s);
    again->peak_bytes.push_back(device.peak_bytes);
  }
  again->shortage.reset();
  again->stages.clear();
  return PlacementPlanPtr(std::move(again));
}

}  // namespace turnpoint
