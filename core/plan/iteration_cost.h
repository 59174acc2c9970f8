// SPDX-License-Identifier: Apache-2.0
// What an iteration has of an operator's and a resharding's costs. Plans hold both for one micro-batch.
#pragma once

#include "core/plan/plan.h"

namespace turnpoint {

/// Times as often as there are micro-batches, but for those that an iteration has once (once_an_iteration()). Memory
/// stays what it is. Of a plan without stages they add up to the plan's cost; waiting in a pipeline is no operator's.
CostBreakdown of_iteration(const PlanOperator& op, int micro_batches);
CostBreakdown of_iteration(const PlanReshard& reshard, int micro_batches);

/// Seconds of an iteration in which an operator's gradients are summed and its sharded weights gathered.
double synchronisation_s(const PlanOperator& op, int micro_batches);

}  // namespace turnpoint
