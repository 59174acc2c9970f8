// SPDX-License-Identifier: Apache-2.0
#include "core/plan/evaluator.h"

#include "core/plan/charges.h"

namespace turnpoint {

Expected<CostBreakdown> evaluate_plan(const Scenario& scenario, const Plan& plan) {
  if (plan.pipeline) {
    const auto laid_out = evaluate_pipeline(scenario, plan);
    if (!laid_out) return laid_out.error();
    return laid_out->cost;
  }
  const auto charges = charges_of(scenario, plan);
  if (!charges) return charges.error();
  CostBreakdown total;
  for (const PlanCharge& charge : *charges) total += charge.cost;
  return total;
}

}  // namespace turnpoint
