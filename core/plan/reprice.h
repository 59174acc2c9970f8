// SPDX-License-Identifier: Apache-2.0
// A plan's times on other hardware: the same configurations, choices, copies and steps, priced anew. What calibrated
// hardware predicts of a plan that was found before it was calibrated.
#pragma once

#include <optional>

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// What a step asks of CollectiveModel::time().
struct StepCollective {
  Collective kind = Collective::all_reduce;
  DeviceGroup group;
  double bytes = 0;       ///< as time() takes them: the full tensor of one group; all-to-all and send: the local block
  double full_bytes = 0;  ///< as CollectiveSample counts them: of an all-to-all the blocks of all members together
};
/// Nothing for a slice. A permute is a send among all devices of the levels it crosses.
std::optional<StepCollective> collective_of(const Mesh& mesh, const ReshardStep& step);

/// Times of operators, steps, updates and offloading, and bytes of parameters, gradients and optimizer state, as
/// `scenario` has them; what is kept of activations and what is sent stay as they are. A pipeline's schedule is
/// laid out anew. Usage error: hardware of another shape than the plan's mesh.
Expected<Plan> repriced(const Scenario& scenario, const Plan& plan);

}  // namespace turnpoint
