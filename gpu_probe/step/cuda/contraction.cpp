// SPDX-License-Identifier: Apache-2.0
// Products by cublasLt. Results of all kernels of this folder are not initialised when they are handed in.
#include <algorithm>

#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step::in_cuda {

namespace {

Expected<void> check(const LocalOperator& at) {
  const Operator& op = at.op();
  if (op.inputs.size() < 2 || op.inputs.size() > 3) return at.error("a product of more than two tensors");
  const bool walked =
      std::all_of(op.inputs.begin(), op.inputs.end(), [&](const Access& a) { return walks_all(at, a); });
  if (!walked || !walks_all(at, op.outputs.front())) return at.error("a product has a dimension that no loop walks");
  return {};
}

Strides output_sizes(const LocalOperator& at, const Strides& y) {
  Strides sizes = at.sizes();
  for (std::size_t l = 0; l < sizes.size(); ++l)
    if (y[l] == 0) sizes[l] = 1;
  return sizes;
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (auto fine = check(at); !fine) return fine;
  const Operator& op = at.op();
  const Strides y = at.strides(op.outputs[0], *out[0]);
  const bool biased = in.size() > 2 && at.adds_once;
  const bool added =
      contract(at.sizes(), in[0]->data.data(), at.strides(op.inputs[0], *in[0]), in[1]->data.data(),
               at.strides(op.inputs[1], *in[1]), out[0]->data.data(), y, out[0]->data.size(),
               biased ? in[2]->data.data() : Place{}, biased ? at.strides(op.inputs[2], *in[2]) : Strides{});
  if (biased && !added)
    move_strided(output_sizes(at, y), in[2]->data.data(), at.strides(op.inputs[2], *in[2]), out[0]->data.data(), y,
                 true);
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (auto fine = check(at); !fine) return fine;
  const Operator& op = at.op();
  const Strides dy = at.strides(op.outputs[0], *gradient[0]);
  for (std::size_t k = 0; k < 2; ++k) {
    if (!result[k]) continue;
    const Block* other = in[1 - k];
    if (!other) return at.error("backward needs an operand that the model does not save");
    contract(at.sizes(), gradient[0]->data.data(), dy, other->data.data(), at.strides(op.inputs[1 - k], *other),
             result[k]->data.data(), at.strides(op.inputs[k], *result[k]), result[k]->data.size());
  }
  if (in.size() < 3 || !result[2]) return {};
  if (!at.adds_once) return result[2]->data.clear(), Expected<void>();
  const Strides zero = none(dy.size());
  sum_over(output_sizes(at, dy), {at.strides(op.inputs[2], *result[2]), dy, zero, zero, zero}, SumOf::a,
           {gradient[0]->data.data(), {}, {}, {}, {}}, result[2]->data.data(), result[2]->data.size());
  return {};
}

}  // namespace

const Kernel kernels::kContraction{forward, backward};

}  // namespace turnpoint::step::in_cuda
