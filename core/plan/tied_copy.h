// SPDX-License-Identifier: Apache-2.0
// A weight that two stages of a pipeline hold: what the stage of its user does for its copy, as the owner's stage does
// for its own. Engines sum the gradient of each copy among the devices of its stage, then between both stages, and each
// stage updates what it holds (Megatron-LM: finish_grad_sync, then the all-reduce over the embedding group).
#pragma once

#include "core/cost/tensor_use.h"
#include "core/plan/plan.h"

namespace turnpoint {

/// Gives `sum` what it holds and does on the user's stage: bytes, steps on the mesh of one stage, seconds of the
/// update. The copy's update is shared out as the owner's is, among those devices that hold the same of it, and takes
/// the sums over their shards that the optimizer needs. Where weights stay sharded the copy is gathered for each of its
/// own reads. `plan`: of one stage. Adding the copy's gradients of several micro-batches to their sum is not charged.
void describe_tied_copy(const Scenario& one_stage, const TensorUses& uses, const Plan& plan, const ParameterTie& tie,
                        PlanPipeline::TiedSum& sum);

/// Takes the reads of users on other stages than their owner's out of what owners' weights are read for
/// (TensorUses::parameter_reads): those are reads of a copy. Stages are as the plan's operators have them.
void leave_reads_to_copies(const Model& model, const Plan& plan, const std::vector<ParameterTie>& ties,
                           std::vector<std::vector<int>>& reads);

/// What analyse_tensor_uses() says, with these reads taken out. A plan of another model takes none out.
TensorUses uses_on_stages(const Model& model, const Plan& plan);

/// Elements of the user's copy on one device.
std::int64_t tied_elements(const Model& model, const Plan& plan, const ParameterTie& tie);

}  // namespace turnpoint
