// SPDX-License-Identifier: Apache-2.0
// Sharded updates on the splits of any plan: whose update is shared out, among which of the devices that hold the same
// of its weights, by what a step takes for it.
//
// Source: Xu et al., arXiv 2004.13336, 3, who begin with data parallelism; here every weight has replicas of its own.
#pragma once

#include <array>
#include <vector>

#include "core/cost/memory_choice.h"
#include "core/plan/plan.h"
#include "core/plan/weight_update.h"
#include "core/scenario/scenario.h"
#include "core/search/update_sharding/training_program.h"
#include "core/search/update_sharding/update_cost.h"

namespace turnpoint::update_sharding {

struct PlannedUpdates {
  std::vector<MemoryChoice> choices;  ///< by operator: whole, or sharded until the new weights are gathered
  std::vector<WeightUpdate> weights;  ///< of each operator with parameters of its own, all of them together
  HeldBytes held;                     ///< of a device that has part in all stages
};

/// Of `splits` an operator's configuration counts, and whether it runs again and where its optimizer state lives, but
/// not how it is updated there. A pipeline comes on the mesh of one stage, `scenario` being that stage's
/// (core/plan/one_stage.h): the devices that hold the same of a weight are then those of its stage, and with several
/// micro-batches gradients are summed whole until the update (Update::sharded_state), so that shards are exchanged
/// once. The devices among whom an update is shared out lie as near to each other as they can, and are as many as take
/// least, checkpoints of the optimizer state included; what takes no less than the whole update stays whole. The loop's
/// summaries and evaluations read weights, which are whole after every step.
PlannedUpdates updates_on(const Scenario& scenario, const Plan& splits, const TrainingLoop& loop);

/// The choice with the update made by every holder, and all else as it is.
MemoryChoice whole_update(MemoryChoice choice);
/// How updates are shared out in ZeRO's stages 1 to 3.
inline constexpr std::array kZeroStages = {Update::sharded_state, Update::sharded, Update::sharded_weights};

/// The plan with these choices by operator, its operators' costs and collectives with them. Its own cost is made anew
/// where it has no pipeline; a pipeline's is for its schedule to say.
Plan with_choices(const Scenario& scenario, Plan plan, const std::vector<MemoryChoice>& choices);
/// Likewise, with every update whole and all else as it is.
Plan with_whole_updates(const Scenario& scenario, Plan plan);

}  // namespace turnpoint::update_sharding
