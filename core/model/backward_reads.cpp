// SPDX-License-Identifier: Apache-2.0
#include "core/model/backward_reads.h"

#include <algorithm>

namespace turnpoint {

bool reads_scale_unsaved(const Model& model, const Operator& op, std::size_t input) {
  if (op.kind != OperatorKind::normalisation && op.kind != OperatorKind::batch_normalisation) return false;
  if (!model.tensors[op.inputs.front().tensor].requires_gradient || op.inputs[input].saved) return false;
  for (std::size_t k = 1; k < op.inputs.size(); ++k)
    if (model.tensors[op.inputs[k].tensor].role != TensorRole::buffer) return k == input;
  return false;
}

bool backward_reads_weights(const Model& model, const Operator& op, std::size_t input) {
  if (model.tensors[op.inputs[input].tensor].role != TensorRole::parameter) return false;
  if (!op.inputs[input].saved && !reads_scale_unsaved(model, op, input)) return false;
  if (op.kind == OperatorKind::recurrent) return true;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
    const Tensor& tensor = model.tensors[access.tensor];
    return tensor.role != TensorRole::parameter && tensor.requires_gradient &&
           model.tensors[storage_of(model, access.tensor)].producer.valid();
  });
}

}  // namespace turnpoint
