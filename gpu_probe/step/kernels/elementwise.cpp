// SPDX-License-Identifier: Apache-2.0
// Broadcasting elementwise functions, with a mask where the model keeps one (dropout: an element in five is zero), and
// the mean cross-entropy.
#include <algorithm>
#include <cmath>
#include <memory>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"
#include "gpu_probe/step/numbers.h"

namespace turnpoint::step::TURNPOINT_REAL {

namespace {

std::int64_t global_index(const LocalOperator& at, const Block& block, std::int64_t local) {
  const Shape& shape = at.output(0).shape;
  std::int64_t index = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    index += (block.region.offset[d] + local % block.region.extent[d]) * stride;
    local /= block.region.extent[d];
    stride *= shape[d];
  }
  return index;
}

Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Operator& op = at.op();
  const Call call(at);
  const bool floating = is_floating(at.output(0).type), masked = op.outputs.size() > 1;
  if (!walks_all(at, op.outputs[0])) return at.error("an elementwise result has a dimension that no loop walks");
  // A mask alone is made without its operands.
  const bool mask_only = masked && std::find(in.begin(), in.end(), nullptr) != in.end();
  std::vector<std::vector<std::int64_t>> strides;
  for (std::size_t k = 0; k < in.size() && !mask_only; ++k) strides.push_back(at.strides(op.inputs[k], *in[k]));
  std::vector<Real> x(in.size());
  for_each<1>(at.sizes(), {at.strides(op.outputs[0], *out[0])}, [&](const auto& index, const auto& o) {
    for (std::size_t k = 0; k < in.size() && !mask_only; ++k) {
      std::int64_t from = 0;
      for (std::size_t l = 0; l < index.size(); ++l) from += index[l] * strides[k][l];
      x[k] = in[k]->data[index_of(from)];
    }
    double y = call.function.value(x, call.saved);
    if (masked) {
      const auto element = static_cast<std::uint64_t>(global_index(at, *out[0], o[0]));
      const bool kept = counter_uniform(at.seed, at.id.index + kMaskStream, element) >= kDropped;
      y = kept ? y / (1 - kDropped) : 0;
      if (out[1]) out[1]->data[index_of(o[0])] = kept ? 1 : 0;
    }
    out[0]->data[index_of(o[0])] = static_cast<Real>(floating ? y : std::floor(std::abs(y)));
  });
  return {};
}

Expected<void> backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  if (!gradient[0]) return {};
  const Operator& op = at.op();
  const Call call(at);
  const bool masked = op.outputs.size() > 1;
  if (op.outputs[0].saved && !out[0]) return at.error("backward needs its output, which is not there");
  if (masked && !out[1]) return at.error("backward needs its mask, which is not there");
  for (std::size_t k = 0; k < in.size(); ++k)
    if (op.inputs[k].saved && !in[k]) return at.error("backward needs an operand that is not there");
  std::vector<std::vector<std::int64_t>> strides;
  for (std::size_t k = 0; k < in.size(); ++k)
    strides.push_back(in[k]       ? at.strides(op.inputs[k], *in[k])
                      : result[k] ? at.strides(op.inputs[k], *result[k])
                                  : std::vector<std::int64_t>());
  std::vector<Real> x(in.size());
  std::vector<std::int64_t> place(in.size());
  for_each<1>(at.sizes(), {at.strides(op.outputs[0], *gradient[0])}, [&](const auto& index, const auto& o) {
    const auto element = index_of(o[0]);
    double dy = gradient[0]->data[element];
    if (masked) dy *= out[1]->data[element] / (1 - kDropped);
    const double y = out[0] ? out[0]->data[element] : 0;
    for (std::size_t k = 0; k < in.size(); ++k) {
      place[k] = 0;
      for (std::size_t l = 0; l < strides[k].size(); ++l) place[k] += index[l] * strides[k][l];
      x[k] = in[k] ? in[k]->data[index_of(place[k])] : 0;
    }
    for (std::size_t k = 0; k < in.size(); ++k)
      if (result[k])
        result[k]->data[index_of(place[k])] += static_cast<Real>(dy * call.function.slope(x, y, k, call.saved));
  });
  return {};
}

std::int64_t label_of(const Block& labels, std::int64_t row, std::int64_t classes) {
  return static_cast<std::int64_t>(std::abs(labels.data[index_of(row)])) % classes;
}

Expected<void> loss_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Rows r = rows_of(at, *in[0]);
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->data.data() + row * r.classes;
    const double largest = *std::max_element(x, x + r.classes);
    double total = 0;
    for (std::int64_t c = 0; c < r.classes; ++c) total += std::exp(x[c] - largest);
    out[0]->data[0] += static_cast<Real>((std::log(total) + largest - x[label_of(*in[1], row, r.classes)]) /
                                         static_cast<double>(r.all_rows));
  }
  return {};
}

Expected<void> loss_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0]) return {};
  if (!in[0] || !in[1]) return at.error("backward needs logits and labels");
  const Rows r = rows_of(at, *in[0]);
  const double scale = gradient[0]->data[0] / static_cast<double>(r.all_rows);
  for (std::int64_t row = 0; row < r.rows; ++row) {
    const Real* x = in[0]->data.data() + row * r.classes;
    Real* d = result[0]->data.data() + row * r.classes;
    const double largest = *std::max_element(x, x + r.classes);
    double total = 0;
    for (std::int64_t c = 0; c < r.classes; ++c) total += std::exp(x[c] - largest);
    for (std::int64_t c = 0; c < r.classes; ++c) d[c] += static_cast<Real>(scale * std::exp(x[c] - largest) / total);
    d[label_of(*in[1], row, r.classes)] -= static_cast<Real>(scale);
  }
  return {};
}

}  // namespace

const Kernel kernels::kElementwise{forward, backward, TURNPOINT_FAST(elementwise_forward),
                                   TURNPOINT_FAST(elementwise_backward)};
const Kernel kernels::kCrossEntropy{loss_forward, loss_backward, TURNPOINT_FAST(loss_forward),
                                    TURNPOINT_FAST(loss_backward)};

}  // namespace turnpoint::step::TURNPOINT_REAL
