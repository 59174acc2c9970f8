// SPDX-License-Identifier: Apache-2.0
#include "core/model/remove_from.h"

namespace turnpoint {

void remove_from(Model& model, const std::vector<bool>& gone, const std::vector<bool>& gone_tensor,
                 std::vector<TensorId>& results) {
  std::vector<OperatorId> new_operator(model.operators.size());
  std::vector<TensorId> new_tensor(model.tensors.size());
  IdVector<OperatorId, Operator> operators;
  IdVector<TensorId, Tensor> tensors;
  for (std::size_t o = 0; o < gone.size(); ++o) {
    if (gone[o]) continue;
    new_operator[o] = operators.next_id();
    operators.push_back(std::move(model.operators[OperatorId(o)]));
  }
  for (std::size_t t = 0; t < gone_tensor.size(); ++t) {
    if (gone_tensor[t]) continue;
    new_tensor[t] = tensors.next_id();
    tensors.push_back(std::move(model.tensors[TensorId(t)]));
  }
  for (auto& op : operators) {
    for (auto& access : op.inputs) access.tensor = new_tensor[access.tensor.index];
    for (auto& access : op.outputs) access.tensor = new_tensor[access.tensor.index];
  }
  for (auto& tensor : tensors) {
    if (tensor.producer.valid()) tensor.producer = new_operator[tensor.producer.index];
    if (tensor.tied_to.valid()) tensor.tied_to = new_tensor[tensor.tied_to.index];
  }
  for (auto& id : results) id = new_tensor[id.index];
  model.operators = std::move(operators);
  model.tensors = std::move(tensors);
}

}  // namespace turnpoint
