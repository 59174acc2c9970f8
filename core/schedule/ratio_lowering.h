// SPDX-License-Identifier: Apache-2.0
// A ratio plan as the items that its devices run, laid on lanes like those of sharding plans (plan_lowering.h). So that
// anyone can recompute it:
//
//  Roles: devices of one type with equal parts of everything, in equal places of the tree, are one role. A role has a
//  lane for computing, one for links inside its node and one for links between nodes.
//
//  Durations are what RatioCharges says (core/plan/ratio_charges.h): a device's own forward, backward and update, and
//  the exchanges of the cuts. An exchange is one item that holds the lane of its links on all roles of its part; so it
//  begins once all of them have what they give, and ends for all at once.
//
//  Order of issue: all operators forward in the model's order, all backward in reverse order, then the updates in the
//  order in which backward came to their operators; of each operator role by role. Nothing of a block computes on a
//  role before all computing of the block before has ended there. Behind an operator come the exchanges that bring its
//  outputs to their readers, from the outermost cut inwards; behind a backward those of the gradients of its inputs,
//  each once all the readers that share it have theirs. What runs again on a role does so before the first backward
//  that asks for what it makes, or before its own, and once all backward before that has ended. Gradients of weights go
//  from the outermost cut inwards, too; at each cut they fill messages, and one travels when it is full or backward has
//  ended; those that are scattered and those that both halves want whole fill messages of their own. They let others
//  go first. Behind an operator's update on all roles its new weights are gathered where the update is shared out, from
//  the innermost cut outwards.
//
//  Memory: as in plan_schedule.h. What an exchange brings is a copy from the begin of the first exchange on its way, of
//  the size that its reader reads; readers whose copies come the same way share one. A tensor that a reader cuts out of
//  one that is there has no copy. Of a gradient whose update is shared out a role keeps its shard from the last exchange
//  that scatters it; where both halves compute it alike, from its backward.
#pragma once

#include "core/base/expected.h"
#include "core/plan/ratio_plan.h"
#include "core/scenario/scenario.h"
#include "core/schedule/plan_lowering.h"

namespace turnpoint {

/// Most roles times operators that are laid out.
inline constexpr std::size_t kMostRatioTasks = 1'000'000;

/// Error: the plan is not one of this scenario; it has too many unlike parts.
Expected<LoweredPlan> lower_ratio_plan(const Scenario& scenario, const RatioPlan& plan,
                                       std::size_t most = kMostRatioTasks);

}  // namespace turnpoint
