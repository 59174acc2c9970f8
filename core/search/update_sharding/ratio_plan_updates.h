// SPDX-License-Identifier: Apache-2.0
// Sharded updates on a ratio plan: at which cuts of its tree the update of whose weights is shared out, and in which
// shares, by what the operator adds to the step.
//
// Source: Xu et al., arXiv 2004.13336, 3, for equal replicas; that replicas may be unlike and lie in a tree is ours.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/plan/ratio_plan.h"
#include "core/plan/weight_update.h"
#include "core/scenario/scenario.h"
#include "core/search/update_sharding/decision_words.h"
#include "core/search/update_sharding/training_program.h"

namespace turnpoint::update_sharding {

struct RatioPlanUpdates {
  RatioPlan plan;                     ///< priced, with cuts of its own for unlike places
  std::vector<WeightUpdate> weights;  ///< of each operator with parameters of its own, all of them together
  /// Of weights, gradients and states, whatever the accounting leaves out. ZeRO's stages 1 to 3: what several devices
  /// hold alike is shared out among all of these in equal parts.
  FullestDevice held;
};

/// Of `splits` all but the updates counts. A cut's update may be whole; shared out evenly between both halves; by their
/// numbers of devices; by their devices' memory bandwidths: all ways are looked through that these make up, but below
/// four cuts with unlike halves all devices have equal shares. Whole is what gains nothing, checkpoints of the
/// optimizer state included.
/// Errors: the plan is not one of this scenario; cancelled.
Expected<RatioPlanUpdates> updates_on(const Scenario& scenario, const RatioPlan& splits, const TrainingLoop& loop,
                                      const RunContext& context);

/// Of `splits` with its updates whole, the plan whose cuts are numbered as those of updates_on() are: places whose
/// devices are unlike have cuts of their own. Errors: the plan is not one of this scenario.
Expected<RatioPlan> numbered_as_updated(const Scenario& scenario, const RatioPlan& splits);

}  // namespace turnpoint::update_sharding
