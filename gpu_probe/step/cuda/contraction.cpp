// SPDX-License-Identifier: Apache-2.0
// Products by cublasLt. Results of all kernels of this folder are not initialised when they are handed in.
#include <algorithm>

#include "gpu_probe/step/cuda/gpu_kernels.h"
#include "gpu_probe/step/cuda/walk.h"
#include "gpu_probe/step/kernels/product.h"

namespace turnpoint::step::in_cuda {

namespace {

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto product = product_of(at);
  if (!product) return product.error();
  const Operator& op = at.op();
  Array& result = out[0]->data;
  const Strides a = at.strides(op.inputs[0], *in[0]), y = at.strides(op.outputs[0], *out[0]);
  const bool biased = product->bias && at.adds_once;
  bool added = false;
  for (const auto& part : product->parts) {
    const bool first = &part == product->parts.data();
    Array room = first ? result : Array::scratch(result.size());
    added = contract(part.sizes(at), in[0]->data.data() + part.offset(a), a, in[part.other]->data.data(),
                     part.strides(at, *in[part.other]), room.data(), y, room.size(),
                     biased ? in[2]->data.data() : Place{}, biased ? at.strides(op.inputs[2], *in[2]) : Strides{});
    if (!first) add(room.data(), result.data(), result.size());
  }
  if (biased && !added)
    move_strided(loops_of_result(at, y), in[2]->data.data(), at.strides(op.inputs[2], *in[2]), result.data(), y, true);
  if (product->table && at.adds_once)
    for (const auto& run : table_runs(at, y, in[2]->data.size()))
      move_strided(run.sizes, in[2]->data.data() + run.from, run.strides, result.data() + run.to, y, true);
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  const auto product = product_of(at);
  if (!product) return product.error();
  const Operator& op = at.op();
  const Array& all = gradient[0]->data;
  const Strides dy = at.strides(op.outputs[0], *gradient[0]);
  for (const auto& part : product->parts) {
    if ((result[0] && !in[part.other]) || (result[part.other] && !in[0]))
      return at.error("backward needs an operand that the model does not save");
    if (result[0]) {
      const Strides strides = at.strides(op.inputs[0], *result[0]);
      contract(part.sizes(at), all.data(), dy, in[part.other]->data.data(), part.strides(at, *in[part.other]),
               result[0]->data.data() + part.offset(strides), strides, result[0]->data.size());
    }
    if (result[part.other]) {
      const Strides strides = at.strides(op.inputs[0], *in[0]);
      contract(part.sizes(at), all.data(), dy, in[0]->data.data() + part.offset(strides), strides,
               result[part.other]->data.data(), part.strides(at, *result[part.other]), result[part.other]->data.size());
    }
  }
  if ((!product->bias && !product->table) || !result[2]) return {};
  result[2]->data.clear();
  const Strides zero = none(dy.size());
  if (product->table) {
    for (const auto& run : table_runs(at, dy, result[2]->data.size())) {
      Array sum = Array::scratch(static_cast<std::size_t>(run.count));
      sum_over(run.sizes, {run.strides, dy, zero, zero, zero}, SumOf::a, {all.data() + run.to, {}, {}, {}, {}},
               sum.data(), sum.size());
      add(sum.data(), result[2]->data.data() + run.from, sum.size());
    }
    return {};
  }
  sum_over(loops_of_result(at, dy), {at.strides(op.inputs[2], *result[2]), dy, zero, zero, zero}, SumOf::a,
           {all.data(), {}, {}, {}, {}}, result[2]->data.data(), result[2]->data.size());
  return {};
}

}  // namespace

const Kernel GpuKernels::contraction{forward, backward};

}  // namespace turnpoint::step::in_cuda
