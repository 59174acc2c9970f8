// SPDX-License-Identifier: Apache-2.0
// The decisions of a network's training program as a data-parallel plan can carry them: each operator's parameters are
// updated together, as the largest of them is best updated.
#pragma once

#include <vector>

#include "core/cost/memory_choice.h"
#include "core/plan/weight_update.h"
#include "core/scenario/scenario.h"
#include "core/search/update_sharding/training_program.h"
#include "core/search/update_sharding/update_cost.h"

namespace turnpoint::update_sharding {

struct DataParallelUpdates {
  std::vector<MemoryChoice> choices;  ///< by operator: among whom, when weights are gathered, in which shards
  /// Of each weight, as the plan updates it: a weight that goes with a larger one of its operator says so.
  std::vector<WeightUpdate> weights;
  HeldBytes held;  ///< of one replica
  bool shards_gradients = false;
};

/// Groups are those that axes of the scenario's mesh make up. Errors: as of training_program_of() and decide_updates().
Expected<DataParallelUpdates> data_parallel_updates(const Scenario& scenario, const TrainingLoop& loop);

}  // namespace turnpoint::update_sharding
