// SPDX-License-Identifier: Apache-2.0
// Tables for spreadsheets: RFC 4180, decimal points, SI units in the heads.
#include <fmt/format.h>

#include "core/plan/escape.h"
#include "core/plan/export.h"

namespace turnpoint {

std::string write_points_csv(const Result& result) {
  std::string csv = "point,memory_bytes,time_s,compute_s,network_s,fits,turning_point,near_best\r\n";
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const ResultPoint& point = result.points[i];
    csv += fmt::format("{},{},{},{},{},{:d},{:d},{:d}\r\n", i, point.memory_bytes, point.time_s, point.compute_s,
                       point.network_s, point.fits, result.turning_point == i, result.near_best == i);
  }
  return csv;
}

std::string write_plan_csv(const Scenario& scenario, const Plan& plan) {
  const Model& model = *scenario.model;
  // A resharding is listed with whoever asked for it, so that the rows add up to the plan.
  std::vector<CostBreakdown> reshard(model.operators.size());
  for (const PlanReshard& item : plan.reshards)
    reshard[(item.consumer.valid() ? item.consumer : item.producer).index] += item.cost;

  std::string csv = "operator,detail,scope,configuration,memory_choice";
  for (int i = 0; i < kMemoryParts; ++i) csv += fmt::format(",{}_bytes", to_string(static_cast<MemoryPart>(i)));
  for (int i = 0; i < kComputeParts; ++i) csv += fmt::format(",{}_s", to_string(static_cast<ComputePart>(i)));
  csv += ",gradient_sync_s,reshard_bytes,reshard_s\r\n";
  for (const PlanOperator& item : plan.operators) {
    const Operator& op = model.operators[item.op];
    csv += fmt::format("{},{},{},{},{}", csv_field(op.name), csv_field(op.detail), csv_field(op.scope),
                       csv_field(describe(plan.mesh, item.split, op)), csv_field(describe(plan.mesh, item.choice)));
    for (const std::int64_t bytes : item.cost.memory) csv += fmt::format(",{}", bytes);
    for (const double seconds : item.cost.compute) csv += fmt::format(",{}", seconds);
    const CostBreakdown& moved = reshard[item.op.index];
    csv += fmt::format(",{},{},{}\r\n", item.cost.network_s(), moved.memory_bytes(), moved.time_s());
  }
  return csv;
}

}  // namespace turnpoint
