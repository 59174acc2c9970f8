// SPDX-License-Identifier: Apache-2.0
#include "core/cost/phase_work.h"

namespace turnpoint {

double times_moved(const Operator& op, const Access& access, const Tensor& tensor, bool output, bool backward) {
  if (output) return backward ? (access.saved ? 1 : 0) + (tensor.role == TensorRole::internal ? 0 : 1) : 1;
  if (op.kind == OperatorKind::embedding && tensor.role == TensorRole::parameter) return 0;
  return backward ? (access.saved ? 1 : 0) + (tensor.requires_gradient ? 1 : 0) : 1;
}

const Access* cleared_table(const Model& model, const Operator& op, bool backward, Accounting accounting) {
  if (!backward || op.kind != OperatorKind::embedding || accounting == Accounting::paper) return nullptr;
  const Access& table = op.inputs.front();
  const Tensor& tensor = model.tensors[table.tensor];
  return tensor.role == TensorRole::parameter && tensor.requires_gradient ? &table : nullptr;
}

double launches_of(const Operator& op, std::span<const std::int64_t> local) {
  double steps = 1;
  for (std::size_t i = 0; op.kind == OperatorKind::recurrent && i < local.size(); ++i)
    if (op.dims[i].name == DimName::time || op.dims[i].name == DimName::group) steps *= static_cast<double>(local[i]);
  return steps;
}

}  // namespace turnpoint
