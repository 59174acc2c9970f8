// SPDX-License-Identifier: Apache-2.0
// A weight that two stages of a pipeline hold: what the stage of its user does for its copy, as the owner's stage does
// for its own. Engines sum the gradient of each copy among the devices of its stage, then between both stages, and each
// stage updates what it holds (Megatron-LM: finish_grad_sync, then the all-reduce over the embedding group).
#pragma once

#include "core/cost/tensor_use.h"
#include "core/plan/plan.h"

namespace turnpoint {

/// Gives `sum` what it holds and does on the user's stage: bytes, steps on the mesh of one stage, seconds of the
/// update. The copy's update is shared out as the owner's is, among those devices that hold the same of it. `plan`: of
/// one stage. The gathers of weights that stay sharded are those of the owner, whose operator counts all readers.
/// Adding the copy's gradients of several micro-batches to their sum is not charged.
void describe_tied_copy(const Scenario& one_stage, const TensorUses& uses, const Plan& plan, const ParameterTie& tie,
                        PlanPipeline::TiedSum& sum);

/// Elements of the user's copy on one device.
std::int64_t tied_elements(const Model& model, const Plan& plan, const ParameterTie& tie);

}  // namespace turnpoint
