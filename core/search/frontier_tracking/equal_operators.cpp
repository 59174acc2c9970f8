// SPDX-License-Identifier: Apache-2.0
#include "core/search/frontier_tracking/equal_operators.h"

#include <algorithm>

#include "core/cost/eager_kernels.h"

namespace turnpoint::search {

namespace {

AccessTraits access_traits(const Model& model, const Access& access) {
  const Tensor& tensor = model.tensors[access.tensor];
  return {tensor.role, tensor.type, tensor.requires_gradient, access.saved, false, tensor.shape, access.walks};
}

}  // namespace

OperatorTraits traits_of(const Model& model, const TensorUses& uses, OperatorId id, RunAgain again) {
  const Operator& op = model.operators[id];
  OperatorTraits traits;
  traits.again = again;
  traits.kind = op.kind;
  traits.eager = eager_kernels(op);
  traits.dims = op.dims;
  traits.forward_flop = op.forward_flop;
  traits.backward_flop = op.backward_flop;
  traits.forward_passes = op.forward_passes;
  traits.backward_passes = op.backward_passes;
  for (const Access& access : op.inputs) traits.inputs.push_back(access_traits(model, access));
  for (const Access& access : op.outputs) {
    traits.outputs.push_back(access_traits(model, access));
    traits.outputs.back().counted = counted_with_operator(model, op, access);
  }
  traits.owns_parameter = uses.owns_parameter[id.index];
  traits.parameter_reads = uses.parameter_reads[id.index];
  traits.rerun_reads = uses.rerun_reads[id.index];
  const bool owns = std::ranges::any_of(traits.owns_parameter, [](bool own) { return own; });
  traits.layer_parameters = owns ? uses.parameters.layer[id.index] : 0;
  return traits;
}

}  // namespace turnpoint::search
