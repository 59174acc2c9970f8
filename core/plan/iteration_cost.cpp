// SPDX-License-Identifier: Apache-2.0
#include "core/plan/iteration_cost.h"

#include "core/cost/operator_cost.h"

namespace turnpoint {

CostBreakdown of_iteration(const PlanOperator& op, int micro_batches) {
  return of_iteration(op.cost, once_an_iteration(op.cost, op.parameters, op.choice.update), micro_batches);
}

CostBreakdown of_iteration(const PlanReshard& reshard, int micro_batches) {
  return of_iteration(reshard.cost, {}, micro_batches);
}

double synchronisation_s(const PlanOperator& op, int micro_batches) {
  CostBreakdown one;
  add_network(one, all_steps(op.parameters));
  return of_iteration(one, once_an_iteration(one, op.parameters, op.choice.update), micro_batches).network_s();
}

}  // namespace turnpoint
