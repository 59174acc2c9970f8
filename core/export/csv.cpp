// SPDX-License-Identifier: Apache-2.0
// A plan as a table for spreadsheets: RFC 4180, decimal points, SI units in the heads.
#include <fmt/format.h>

#include <iterator>

#include "core/export/format.h"
#include "core/export/writers.h"
#include "core/plan/iteration_cost.h"
#include "core/plan_io/escape.h"
#include "core/simulation/simulator.h"

namespace turnpoint {

std::string write_plan_csv(const Scenario& scenario, const Plan& plan) {
  const Model& model = *scenario.model;
  const int micro_batches = plan.micro_batches();
  // A resharding is listed with whoever asked for it, so that the rows add up to the plan.
  std::vector<CostBreakdown> reshard(model.operators.size());
  for (const PlanReshard& item : plan.reshards)
    reshard[(item.consumer.valid() ? item.consumer : item.producer).index] += of_iteration(item, micro_batches);

  std::string csv = "operator,detail,scope,configuration,memory_choice";
  for (int i = 0; i < kMemoryParts; ++i) csv += fmt::format(",{}_bytes", to_string(static_cast<MemoryPart>(i)));
  for (int i = 0; i < kComputeParts; ++i) csv += fmt::format(",{}_s", to_string(static_cast<ComputePart>(i)));
  csv += ",gradient_sync_s,reshard_bytes,reshard_s\r\n";
  for (const PlanOperator& item : plan.operators) {
    const Operator& op = model.operators[item.op];
    const CostBreakdown cost = of_iteration(item, micro_batches);
    csv += fmt::format("{},{},{},{},{}", csv_field(op.name), csv_field(op.detail), csv_field(op.scope),
                       csv_field(describe(plan.mesh, item.split, op)), csv_field(describe(plan.mesh, item.choice)));
    for (const std::int64_t bytes : cost.memory) csv += fmt::format(",{}", bytes);
    for (const double seconds : cost.compute) csv += fmt::format(",{}", seconds);
    const CostBreakdown& moved = reshard[item.op.index];
    csv += fmt::format(",{},{},{}\r\n", cost.network_s(), moved.memory_bytes(), moved.time_s());
  }
  return csv;
}

std::string write_plan_csv(const PlanAlone& alone) {
  Scenario scenario;
  scenario.model = std::make_shared<Model>(alone.model);
  return write_plan_csv(scenario, alone.plan);
}

Expected<std::string> write_placement_csv(const PlacementPlan& plan) {
  const TaskGraph& graph = *plan.graph;
  const auto simulation = simulate(graph, plan.placement, false, "placement of the plan");
  if (!simulation) return simulation.error();
  std::string csv = "task,name,kind,scope,device,start_s,end_s,output_bytes,persistent_bytes,workspace_bytes\r\n";
  for (TaskIndex t = 0; t < graph.task_count(); ++t)
    fmt::format_to(std::back_inserter(csv), "{},{},{},{},{},{},{},{},{},{}\r\n", t, csv_field(graph.names[t]),
                   to_string(graph.kind[t]), csv_field(graph.scopes[graph.scope[t]]), plan.placement.device[t],
                   simulation->start_s[t], simulation->end_s[t], graph.output_bytes[t], graph.persistent_bytes[t],
                   graph.workspace_bytes[t]);
  return csv;
}

ExportFormat csv_format() {
  return {
      .key = "csv",
      .subject = "Plan",
      .name = "CSV",
      .file = "plan.csv",
      .text = "One row per operator or task of the plan",
      .plan = [](const Scenario& scenario, const Plan& plan) { return write_plan_csv(scenario, plan); },
      .ratio = [](const Scenario& scenario, const RatioPlan& plan) { return write_plan_csv(scenario, as_axes(plan)); },
      .placement = [](const Scenario&, const PlacementPlan& plan) { return write_placement_csv(plan); },
      .plan_alone = [](const PlanAlone& alone) -> Expected<std::string> {
        if (!alone.parts) return bad_input("the model: this file has no parts of costs");
        return write_plan_csv(alone);
      }};
}

}  // namespace turnpoint
