// SPDX-License-Identifier: Apache-2.0
// Broadcasting elementwise functions, with a mask where the model keeps one (dropout: an element in five is zero).
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/meaning.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step {

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

/// Elements along the innermost loop: where the first lies in the result and in the operands, and how far it is to the
/// next.
struct Row {
  std::int64_t count = 1, y = 0, y_step = 0;
  std::vector<std::int64_t> x, x_step;
};
template <class Visit>
void for_each_row(const LocalOperator& at, const std::vector<std::int64_t>& y_strides,
                  const std::vector<std::vector<std::int64_t>>& x_strides, const Visit& visit) {
  auto outer = at.sizes();
  std::size_t last = outer.size();
  while (last > 0 && outer[last - 1] == 1) --last;
  Row row;
  row.x.resize(x_strides.size());
  row.x_step.assign(x_strides.size(), 0);
  if (last-- > 0) {
    row.count = std::exchange(outer[last], std::min<std::int64_t>(1, outer[last]));
    row.y_step = y_strides[last];
    for (std::size_t k = 0; k < x_strides.size(); ++k)
      if (!x_strides[k].empty()) row.x_step[k] = x_strides[k][last];
  }
  for_each<1>(outer, {y_strides}, [&](const auto& index, const auto& o) {
    row.y = o[0];
    for (std::size_t k = 0; k < x_strides.size(); ++k) {
      row.x[k] = 0;
      for (std::size_t l = 0; l < x_strides[k].size(); ++l) row.x[k] += index[l] * x_strides[k][l];
    }
    visit(std::as_const(row));
  });
}

template <class Real>
Expected<void> forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Operator& op = at.op();
  const Call call(at);
  const bool floating = is_floating(at.output(0).type), masked = op.outputs.size() > 1;
  if (!walks_all(at, op.outputs[0])) return at.error("an elementwise result has a dimension that no loop walks");
  // A mask alone is made without its operands.
  const bool mask_only = masked && std::find(in.begin(), in.end(), nullptr) != in.end();
  std::vector<std::vector<std::int64_t>> strides;
  for (std::size_t k = 0; k < in.size() && !mask_only; ++k) strides.push_back(at.strides(op.inputs[k], *in[k]));
  std::vector<double> x(in.size());
  for_each_row(at, at.strides(op.outputs[0], *out[0]), strides, [&](const Row& row) {
    // Along a row the place in the whole result goes on by as much each time.
    std::int64_t element = masked ? global_index(at, *out[0], row.y) : 0;
    const std::int64_t further = masked && row.count > 1 ? global_index(at, *out[0], row.y + row.y_step) - element : 0;
    for (std::int64_t i = 0; i < row.count; ++i, element += further) {
      for (std::size_t k = 0; k < row.x.size(); ++k) x[k] = in[k]->as<Real>()[index_of(row.x[k] + i * row.x_step[k])];
      double y = call.function.value(x, call.saved);
      const auto o = index_of(row.y + i * row.y_step);
      if (masked) {
        const bool kept =
            counter_uniform(at.seed, at.id.index + kMaskStream, static_cast<std::uint64_t>(element)) >= kDropped;
        y = kept ? y / (1 - kDropped) : 0;
        if (out[1]) out[1]->as<Real>()[o] = kept ? 1 : 0;
      }
      out[0]->as<Real>()[o] = static_cast<Real>(floating ? y : std::floor(std::abs(y)));
    }
  });
  return {};
}

template <class Real>
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
  std::vector<double> x(in.size());
  for_each_row(at, at.strides(op.outputs[0], *gradient[0]), strides, [&](const Row& row) {
    for (std::int64_t i = 0; i < row.count; ++i) {
      const auto element = index_of(row.y + i * row.y_step);
      double dy = gradient[0]->as<Real>()[element];
      if (masked) dy *= out[1]->as<Real>()[element] / (1 - kDropped);
      const double y = out[0] ? out[0]->as<Real>()[element] : 0;
      for (std::size_t k = 0; k < in.size(); ++k)
        x[k] = in[k] ? in[k]->as<Real>()[index_of(row.x[k] + i * row.x_step[k])] : 0;
      for (std::size_t k = 0; k < in.size(); ++k)
        if (result[k])
          result[k]->as<Real>()[index_of(row.x[k] + i * row.x_step[k])] +=
              static_cast<Real>(dy * call.function.slope(x, y, k, call.saved));
    }
  });
  return {};
}

}  // namespace

const HostKernel HostKernels::elementwise{
    {forward<double>, backward<double>},
    {forward<float>, backward<float>, fast::elementwise_forward, fast::elementwise_backward}};

}  // namespace turnpoint::step
