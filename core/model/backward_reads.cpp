// SPDX-License-Identifier: Apache-2.0
#include "core/model/backward_reads.h"

#include <algorithm>

namespace turnpoint {

bool backward_reads_weights(const Model& model, const Operator& op, std::size_t input) {
  if (model.tensors[op.inputs[input].tensor].role != TensorRole::parameter || !op.inputs[input].saved) return false;
  if (op.kind == OperatorKind::recurrent) return true;
  return std::any_of(op.inputs.begin(), op.inputs.end(), [&](const Access& access) {
    const Tensor& tensor = model.tensors[access.tensor];
    return tensor.role != TensorRole::parameter && tensor.requires_gradient &&
           model.tensors[storage_of(model, access.tensor)].producer.valid();
  });
}

}  // namespace turnpoint
