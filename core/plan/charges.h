// SPDX-License-Identifier: Apache-2.0
// The charges of a plan, worked out from its configurations, layouts and paths alone, with none of the search's tables:
// who pays what, and when. Their sum is the cost of a sharding plan; a pipeline lays them out by stage
// (core/plan/evaluator.h).
#pragma once

#include <vector>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

struct PlanCharge {
  /// Of time: in which phase. Of memory: `forward` is kept from forward to backward, of every micro-batch anew; `once`
  /// is held throughout.
  enum class When : std::uint8_t { forward, backward, once };
  OperatorId payer;  ///< who works, waits for the data or keeps the copy: a copy kept for readers alone is the first
                     ///< reader's, what readers share is paid by the first of all
  OperatorId maker;  ///< who made what moves or is kept; the payer itself for its own work
  When when = When::forward;
  CostBreakdown cost;
};

/// Checks that a plan without stages is legal for the scenario: every consumer gets the layout it reads, no partial
/// sums escape, every kept copy exists. With several micro-batches scenario and plan are those of one, and so are the
/// charges. Error: what is wrong with the plan.
Expected<std::vector<PlanCharge>> charges_of(const Scenario& scenario, const Plan& plan, int micro_batches = 1);

}  // namespace turnpoint
