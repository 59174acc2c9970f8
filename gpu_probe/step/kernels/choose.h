// SPDX-License-Identifier: Apache-2.0
// Which kernel an operator of a model is.
#pragma once

#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

/// A member of `Kernels`. Error: this operator cannot be executed, and why.
template <class Kernels>
Expected<decltype(&Kernels::opaque)> choose_kernel(const Model& model, OperatorId id) {
  const Operator& op = model.operators[id];
  const auto refused = [&](const std::string& why) {
    return usage_error("cannot be executed here: " + why, model.name + ": operator '" + op.name + "'");
  };
  switch (op.kind) {
    case OperatorKind::matmul: return &Kernels::contraction;
    case OperatorKind::convolution: return &Kernels::convolution;
    case OperatorKind::elementwise: return &Kernels::elementwise;
    case OperatorKind::softmax: return &Kernels::softmax;
    case OperatorKind::normalisation: return &Kernels::normalisation;
    case OperatorKind::batch_normalisation: return &Kernels::batch_normalisation;
    case OperatorKind::pooling: return &Kernels::pooling;
    case OperatorKind::reduction: return &Kernels::reduction;
    case OperatorKind::view: return &Kernels::view;
    case OperatorKind::concat: return &Kernels::concat;
    case OperatorKind::slice: return &Kernels::slice;
    case OperatorKind::embedding: return &Kernels::embedding;
    case OperatorKind::loss_statistics: return &Kernels::loss_statistics;
    case OperatorKind::cross_entropy: return &Kernels::cross_entropy;
    case OperatorKind::recurrent:
      if (model.tensors[op.inputs.front().tensor].shape.size() != 3)
        return refused("a recurrent cell made of convolutions");
      return &Kernels::recurrent;
    case OperatorKind::gather: {
      if (op.detail == "Dispatch") return &Kernels::dispatch;
      if (op.detail == "Combine") return &Kernels::combine;
      return refused("a gather of kind '" + op.detail + "'");
    }
    case OperatorKind::opaque: return &Kernels::opaque;
    case OperatorKind::attention:
      if (op.parts && !op.part_loops.empty()) return &Kernels::attention;
      return refused("fused attention without its parts");
    case OperatorKind::input:
    case OperatorKind::scan: break;
  }
  return refused("no arithmetic is known for its kind");
}

}  // namespace turnpoint::step
