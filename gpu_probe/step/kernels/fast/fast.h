// SPDX-License-Identifier: Apache-2.0
// The kernels in float, by matrix products and rows: the same results as the plain loops up to rounding. Each says
// false where a case is not for it, and the plain loops take over. There are none in double.
#pragma once

#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

namespace fast {

bool contraction_forward(const LocalOperator& at, Inputs in, Outputs out);
bool contraction_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool convolution_forward(const LocalOperator& at, Inputs in, Outputs out);
bool convolution_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool pooling_forward(const LocalOperator& at, Inputs in, Outputs out);
bool pooling_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool elementwise_forward(const LocalOperator& at, Inputs in, Outputs out);
bool elementwise_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool statistics_forward(const LocalOperator& at, Inputs in, Outputs out);
bool statistics_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool loss_forward(const LocalOperator& at, Inputs in, Outputs out);
bool loss_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool softmax_forward(const LocalOperator& at, Inputs in, Outputs out);
bool softmax_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool norm_forward(const LocalOperator& at, Inputs in, Outputs out);
bool norm_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool reduction_forward(const LocalOperator& at, Inputs in, Outputs out);
bool reduction_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool view_forward(const LocalOperator& at, Inputs in, Outputs out);
bool view_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool slice_forward(const LocalOperator& at, Inputs in, Outputs out);
bool slice_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool embedding_forward(const LocalOperator& at, Inputs in, Outputs out);
bool embedding_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);
bool recurrent_forward(const LocalOperator& at, Inputs in, Outputs out);
bool recurrent_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result);

/// Y = A x B, summed over loops that Y does not walk; strides per loop, 0: not walked. False: a loop that only one of
/// the three walks.
struct Operand {
  const std::vector<std::int64_t>& strides;
  const float* data;
};
bool contract(const std::vector<std::int64_t>& sizes, const Operand& a, const Operand& b,
              const std::vector<std::int64_t>& y_strides, float* y);
/// to[...] = from[...] over loops; `to` is walked by all loops.
void copy_strided(const std::vector<std::int64_t>& sizes, const Operand& from,
                  const std::vector<std::int64_t>& to_strides, float* to);
/// to[...] += from[...]; where `to` is not walked by a loop, sums over it.
void add_strided(const std::vector<std::int64_t>& sizes, const Operand& from,
                 const std::vector<std::int64_t>& to_strides, float* to);

}  // namespace fast

}  // namespace turnpoint::step
