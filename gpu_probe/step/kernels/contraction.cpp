// SPDX-License-Identifier: Apache-2.0
// Y = sum over reduced loops of A x B, plus a bias that only one of the ranks sharing a sum adds.
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

Expected<void> check(const LocalOperator& at) {
  const Operator& op = at.op();
  if (op.inputs.size() < 2 || op.inputs.size() > 3) return at.error("a product of more than two tensors");
  for (const auto& access : op.inputs)
    if (!walks_all(at, access)) return at.error("a product's operand has a dimension that no loop walks");
  if (!walks_all(at, op.outputs.front())) return at.error("a product's result has a dimension that no loop walks");
  return {};
}

// Loops of the output alone, for a bias.
std::vector<std::int64_t> output_sizes(const LocalOperator& at, const std::vector<std::int64_t>& y) {
  auto sizes = at.sizes();
  for (std::size_t l = 0; l < sizes.size(); ++l)
    if (y[l] == 0) sizes[l] = 1;
  return sizes;
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (auto fine = check(at); !fine) return fine;
  const Operator& op = at.op();
  const Real *a = in[0]->data.data(), *b = in[1]->data.data();
  Real* y = out[0]->data.data();
  const auto y_strides = at.strides(op.outputs[0], *out[0]);
  for_each<3>(at.sizes(), {at.strides(op.inputs[0], *in[0]), at.strides(op.inputs[1], *in[1]), y_strides},
              [&](const auto&, const auto& o) { y[o[2]] += a[o[0]] * b[o[1]]; });
  if (in.size() > 2 && at.adds_once) {
    const Real* c = in[2]->data.data();
    for_each<2>(output_sizes(at, y_strides), {at.strides(op.inputs[2], *in[2]), y_strides},
                [&](const auto&, const auto& o) { y[o[1]] += c[o[0]]; });
  }
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const Operator& op = at.op();
  const Real* dy = gradient[0]->data.data();
  const auto y_strides = at.strides(op.outputs[0], *gradient[0]);
  for (std::size_t k = 0; k < 2; ++k) {
    if (!result[k]) continue;
    const Block* other = in[1 - k];
    if (!other) return at.error("backward needs an operand that the model does not save");
    Real* d = result[k]->data.data();
    const Real* o_data = other->data.data();
    for_each<3>(at.sizes(), {at.strides(op.inputs[k], *result[k]), at.strides(op.inputs[1 - k], *other), y_strides},
                [&](const auto&, const auto& o) { d[o[0]] += dy[o[2]] * o_data[o[1]]; });
  }
  if (in.size() > 2 && result[2] && at.adds_once) {
    Real* d = result[2]->data.data();
    for_each<2>(output_sizes(at, y_strides), {at.strides(op.inputs[2], *result[2]), y_strides},
                [&](const auto&, const auto& o) { d[o[0]] += dy[o[1]]; });
  }
  return {};
}

}  // namespace

const Kernel kernels::kContraction{forward, backward, TURNPOINT_FAST(contraction_forward),
                                   TURNPOINT_FAST(contraction_backward)};

}  // namespace turnpoint::step::TURNPOINT_REAL
