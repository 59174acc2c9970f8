// SPDX-License-Identifier: Apache-2.0
// The independent evaluator: recomputes a plan's cost from its configurations, layouts and paths alone, with none of
// the search's tables. Every method's plan is costed here (resources/manual/costs.md).
#pragma once

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Checks that the plan is legal for the scenario (core/plan/charges.h; a pipeline: evaluate_pipeline()) and works its
/// cost out from first principles. Error: what is wrong with the plan.
Expected<CostBreakdown> evaluate_plan(const Scenario& scenario, const Plan& plan);

/// What a pipeline's stages, micro-batches and layers come to; the rest of PlanPipeline is given.
struct PipelineCost {
  CostBreakdown cost;  ///< as Plan::cost has it
  double bubble_s = 0;
  std::vector<std::int64_t> stage_memory_bytes;
  std::vector<PlanPipeline::TiedSum> tied;
  std::vector<double> send_s, send_back_s;
};

/// The plan must be a pipeline: one stage's charges for one micro-batch, laid out by the 1F1B schedule
/// (PipeDream-Flush; arXiv 2104.04473, 2.2.1). Beside what one stage alone may get wrong it refuses work that reaches
/// across stages, stages that do not follow the flow of tensors, and layers that are cut.
Expected<PipelineCost> evaluate_pipeline(const Scenario& scenario, const Plan& plan);

}  // namespace turnpoint
