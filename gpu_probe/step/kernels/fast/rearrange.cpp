// SPDX-License-Identifier: Apache-2.0
// Views, slices, sums over dimensions and look-ups by rows.
#include <cmath>
#include <cstring>
#include <optional>

#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/fast/nest.h"
#include "gpu_probe/step/kernels/meaning.h"

namespace turnpoint::step::fast {

bool view_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Access &from = at.op().inputs[0], &to = at.op().outputs[0];
  if (out.size() != 1 || in[0]->data.size() != out[0]->data.size() || !walks_all(at, from) || !walks_all(at, to))
    return false;
  copy_strided(at.sizes(), {at.strides(from, *in[0]), in[0]->data.data()}, at.strides(to, *out[0]),
               out[0]->data.data());
  return true;
}

bool view_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0] || result.size() != 1) return false;
  const Access &from = at.op().inputs[0], &to = at.op().outputs[0];
  if (result[0]->data.size() != gradient[0]->data.size() || !walks_all(at, from) || !walks_all(at, to)) return false;
  copy_strided(at.sizes(), {at.strides(to, *gradient[0]), gradient[0]->data.data()}, at.strides(from, *result[0]),
               result[0]->data.data());
  return true;
}

bool slice_forward(const LocalOperator& at, Inputs in, Outputs out) {
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto slice = slice_of(at, k, in[0]->region, out[k]->region);
    if (!slice) return false;
    copy_strided(slice->sizes, {slice->x, in[0]->data.data() + slice->start}, slice->y, out[k]->data.data());
  }
  return true;
}

bool slice_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  if (!result[0]) return false;
  std::vector<std::optional<Slice>> slices(gradient.size());
  for (std::size_t k = 0; k < gradient.size(); ++k) {
    if (!gradient[k]) continue;
    slices[k] = slice_of(at, k, result[0]->region, gradient[k]->region);
    if (!slices[k]) return false;
  }
  result[0]->data.clear();
  for (std::size_t k = 0; k < gradient.size(); ++k)
    if (slices[k])
      add_strided(slices[k]->sizes, {slices[k]->y, gradient[k]->data.data()}, slices[k]->x,
                  result[0]->data.data() + slices[k]->start);
  return true;
}

namespace {

enum class Reduce { sum, mean, other };
Reduce reduce_of(const LocalOperator& at) {
  if (at.op().inputs[0].saved) return Reduce::other;
  return at.op().detail.find("Mean") != std::string::npos ? Reduce::mean : Reduce::sum;
}
float factor_of(const LocalOperator& at, Reduce how) {
  if (how == Reduce::sum) return 1;
  return static_cast<float>(static_cast<double>(at.output(0).elements()) / static_cast<double>(at.input(0).elements()));
}

}  // namespace

bool reduction_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const Reduce how = reduce_of(at);
  if (how == Reduce::other || in.size() != 1 || out.size() != 1 || !walks_all(at, at.op().inputs[0]) ||
      in[0]->data.size() < out[0]->data.size())
    return false;
  out[0]->data.clear();
  add_strided(at.sizes(), {at.strides(at.op().inputs[0], *in[0]), in[0]->data.data()},
              at.strides(at.op().outputs[0], *out[0]), out[0]->data.data());
  const float factor = factor_of(at, how);
  if (factor != 1)
    for (float& y : std::span(out[0]->as<float>(), out[0]->data.size())) y *= factor;
  return true;
}

bool reduction_backward(const LocalOperator& at, Inputs, Inputs, Inputs gradient, Outputs result) {
  const Reduce how = reduce_of(at);
  if (!gradient[0] || !result[0] || how == Reduce::other || result.size() != 1 || !walks_all(at, at.op().inputs[0]))
    return false;
  Nest<2> nest(at.sizes(), {at.strides(at.op().inputs[0], *result[0]), at.strides(at.op().outputs[0], *gradient[0])});
  nest.simplify();
  const float factor = factor_of(at, how);
  nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
    float* d = result[0]->data.data() + o[0];
    const float* dy = gradient[0]->data.data() + o[1];
    if (s[0] == 1 && s[1] == 0)
      std::fill(d, d + count, *dy * factor);
    else
      for (std::int64_t i = 0; i < count; ++i) d[i * s[0]] = dy[i * s[1]] * factor;
  });
  return true;
}

bool embedding_forward(const LocalOperator& at, Inputs in, Outputs out) {
  const std::int64_t all = at.input(0).shape[0], channels = in[0]->region.extent[1], first = in[0]->region.offset[0],
                     rows = in[0]->region.extent[0];
  for (std::size_t i = 0; i < in[1]->data.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(std::abs(in[1]->as<float>()[i])) % all - first;
    float* y = out[0]->data.data() + static_cast<std::int64_t>(i) * channels;
    if (row < 0 || row >= rows)
      std::fill(y, y + channels, 0.0f);
    else
      std::memcpy(y, in[0]->as<float>() + row * channels, static_cast<std::size_t>(channels) * sizeof(float));
  }
  return true;
}

bool embedding_backward(const LocalOperator& at, Inputs in, Inputs, Inputs gradient, Outputs result) {
  if (!gradient[0] || !result[0] || !in[1]) return false;
  const Region& table = result[0]->region;
  const std::int64_t all = at.input(0).shape[0], channels = table.extent[1];
  result[0]->data.clear();
  for (std::size_t i = 0; i < in[1]->data.size(); ++i) {
    const std::int64_t row = static_cast<std::int64_t>(std::abs(in[1]->as<float>()[i])) % all - table.offset[0];
    if (row < 0 || row >= table.extent[0]) continue;
    float* d = result[0]->data.data() + row * channels;
    const float* dy = gradient[0]->data.data() + static_cast<std::int64_t>(i) * channels;
    for (std::int64_t c = 0; c < channels; ++c) d[c] += dy[c];
  }
  return true;
}

}  // namespace turnpoint::step::fast
