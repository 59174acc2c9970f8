// SPDX-License-Identifier: Apache-2.0
// Sharded updates on the splits of any plan: whose update is shared out, among which of the devices that hold the same
// of its weights, by what a step takes for it.
//
// Source: Xu et al., arXiv 2004.13336, 3, who begin with data parallelism; here every weight has replicas of its own.
#pragma once

#include <vector>

#include "core/cost/memory_choice.h"
#include "core/plan/plan.h"
#include "core/plan/weight_update.h"
#include "core/scenario/scenario.h"
#include "core/search/update_sharding/training_program.h"

namespace turnpoint::update_sharding {

struct PlannedUpdates {
  std::vector<MemoryChoice> choices;  ///< by operator: whole, or sharded until the new weights are gathered
  std::vector<WeightUpdate> weights;  ///< of each operator with parameters of its own, all of them together
};

/// Of `splits` an operator's configuration counts alone. The devices among whom an update is shared out are those of
/// the innermost axes, as many as take least, checkpoints of the optimizer state included; what takes no less than
/// the whole update stays whole. The loop's summaries and evaluations read weights, which are whole after every step.
PlannedUpdates updates_on(const Scenario& scenario, const Plan& splits, const TrainingLoop& loop);

}  // namespace turnpoint::update_sharding
