// SPDX-License-Identifier: Apache-2.0
// Y = sum over reduced loops of A x B, plus a bias that only one of the ranks sharing a sum adds.
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/multiply.h"
#include "gpu_probe/step/kernels/product.h"

namespace turnpoint::step {

namespace {

template <class Real>
Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const auto product = product_of(at);
  if (!product) return product.error();
  const Operator& op = at.op();
  Real* y = out[0]->data.data();
  const auto a_strides = at.strides(op.inputs[0], *in[0]), y_strides = at.strides(op.outputs[0], *out[0]);
  for (const auto& part : product->parts) {
    const Real *a = in[0]->data.data() + part.offset(a_strides), *b = in[part.other]->data.data();
    multiply_add({part.sizes(at), {a_strides, part.strides(at, *in[part.other]), y_strides}}, a, b, y);
  }
  if (!at.adds_once) return {};
  if (product->bias) {
    const Real* c = in[2]->data.data();
    for_each<2>(loops_of_result(at, y_strides), {at.strides(op.inputs[2], *in[2]), y_strides},
                [&](const auto&, const auto& o) { y[o[1]] += c[o[0]]; });
  }
  if (product->table)
    for (const auto& run : table_runs(at, y_strides, in[2]->data.size())) {
      const Real* from = in[2]->data.data() + run.from;
      Real* to = y + run.to;
      for_each<2>(run.sizes, {run.strides, y_strides}, [&](const auto&, const auto& o) { to[o[1]] += from[o[0]]; });
    }
  return {};
}

template <class Real>
Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const auto product = product_of(at);
  if (!product) return product.error();
  const Operator& op = at.op();
  const Real* dy = gradient[0]->data.data();
  const auto y_strides = at.strides(op.outputs[0], *gradient[0]);
  // d += dy x other, where both are walked as given.
  const auto add = [&](const ProductPart& part, Real* d, const auto& strides, const Real* other, const auto& others) {
    multiply_add({part.sizes(at), {y_strides, others, strides}}, dy, other, d);
  };
  for (const auto& part : product->parts) {
    if ((result[0] && !in[part.other]) || (result[part.other] && !in[0]))
      return at.error("backward needs an operand that the model does not save");
    if (result[0]) {
      const auto strides = at.strides(op.inputs[0], *result[0]);
      add(part, result[0]->data.data() + part.offset(strides), strides, in[part.other]->data.data(),
          part.strides(at, *in[part.other]));
    }
    if (result[part.other]) {
      const auto strides = at.strides(op.inputs[0], *in[0]);
      add(part, result[part.other]->data.data(), part.strides(at, *result[part.other]),
          in[0]->data.data() + part.offset(strides), strides);
    }
  }
  if (in.size() < 3 || !result[2]) return {};
  Real* d = result[2]->data.data();
  if (product->bias)
    for_each<2>(loops_of_result(at, y_strides), {at.strides(op.inputs[2], *result[2]), y_strides},
                [&](const auto&, const auto& o) { d[o[0]] += dy[o[1]]; });
  if (product->table)
    for (const auto& run : table_runs(at, y_strides, result[2]->data.size())) {
      const Real* from = dy + run.to;
      Real* to = d + run.from;
      for_each<2>(run.sizes, {run.strides, y_strides}, [&](const auto&, const auto& o) { to[o[0]] += from[o[1]]; });
    }
  return {};
}

}  // namespace

const HostKernel HostKernels::contraction{
    {forward<double>, backward<double>},
    {forward<float>, backward<float>, fast::contraction_forward, fast::contraction_backward}};

}  // namespace turnpoint::step
