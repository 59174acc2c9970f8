// SPDX-License-Identifier: Apache-2.0
// Elementwise functions strip by strip: operands are brought into strips that stay in the first cache, the function
// runs over whole strips.
#include <cmath>
#include <memory>

#include "gpu_probe/cpu/clones.h"
#include "gpu_probe/cpu/vector_math.h"
#include "gpu_probe/step/kernels/fast/fast.h"
#include "gpu_probe/step/kernels/fast/nest.h"
#include "gpu_probe/step/kernels/functions.h"
#include "gpu_probe/step/values/numbers.h"

namespace turnpoint::step::fast {

namespace {

using probe::vector_erf;
using probe::vector_exp;
using probe::vector_logistic;
using probe::vector_tanh;

constexpr std::int64_t kStrip = 512;
constexpr std::size_t kMostOperands = 6;
constexpr float kDropped = 0.2f;

struct Strip {
  alignas(64) float v[kStrip];
};
/// Operands of one strip: null where they are not there.
using Operands = std::array<const float*, kMostOperands>;

TURNPOINT_INLINE float gelu_of(float v) { return 0.5f * v * (1.0f + vector_erf(v * 0.70710678f)); }
TURNPOINT_INLINE float gelu_slope_of(float v) {
  return 0.5f * (1.0f + vector_erf(v * 0.70710678f)) + v * vector_exp(-0.5f * v * v) * 0.39894228f;
}
TURNPOINT_INLINE float silu_of(float v) { return v * vector_logistic(v); }
TURNPOINT_INLINE float silu_slope_of(float v) {
  const float s = vector_logistic(v);
  return s * (1.0f + v * (1.0f - s));
}

/// y = x[0] w[0] + x[1] w[1] + ...
TURNPOINT_INLINE void weighted(const Operands& x, std::size_t operands, const float* w, std::int64_t n, float* y) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[0][i] * w[0];
  for (std::size_t k = 1; k < operands; ++k)
    for (std::int64_t i = 0; i < n; ++i) y[i] += x[k][i] * w[k];
}

TURNPOINT_INLINE float factor_of(float v) { return 1.0f + v + 0.25f * v * v; }

struct Weights {
  bool saved[kMostOperands] = {};
  float one[kMostOperands], minus[kMostOperands], linear[kMostOperands];
  Weights() {
    for (std::size_t k = 0; k < kMostOperands; ++k) {
      one[k] = 1;
      minus[k] = k == 0 ? 1.0f : -1.0f;
      linear[k] = static_cast<float>(operand_weight(k));
    }
  }
};

TURNPOINT_CLONES void values(FunctionKind kind, const Weights& w, const Operands& x, std::size_t operands,
                             std::int64_t n, float* y) {
  switch (kind) {
    case FunctionKind::sum: weighted(x, operands, w.one, n, y); return;
    case FunctionKind::difference: weighted(x, operands, w.minus, n, y); return;
    case FunctionKind::linear: weighted(x, operands, w.linear, n, y); return;
    case FunctionKind::relu:
      weighted(x, operands, w.one, n, y);
      for (std::int64_t i = 0; i < n; ++i) y[i] = y[i] > 0 ? y[i] : 0;
      return;
    case FunctionKind::tanh:
      weighted(x, operands, w.one, n, y);
      for (std::int64_t i = 0; i < n; ++i) y[i] = vector_tanh(y[i]);
      return;
    case FunctionKind::tanh_of_linear:
      weighted(x, operands, w.linear, n, y);
      for (std::int64_t i = 0; i < n; ++i) y[i] = vector_tanh(y[i]);
      return;
    case FunctionKind::sigmoid:
      weighted(x, operands, w.one, n, y);
      for (std::int64_t i = 0; i < n; ++i) y[i] = vector_logistic(y[i]);
      return;
    case FunctionKind::exponential:
      weighted(x, operands, w.one, n, y);
      for (std::int64_t i = 0; i < n; ++i) y[i] = vector_exp(y[i]);
      return;
    case FunctionKind::product:
      for (std::int64_t i = 0; i < n; ++i) y[i] = x[0][i];
      for (std::size_t k = 1; k < operands; ++k)
        for (std::int64_t i = 0; i < n; ++i) y[i] *= x[k][i];
      return;
    case FunctionKind::gelu:
      for (std::int64_t i = 0; i < n; ++i) y[i] = gelu_of(x[0][i]);
      return;
    case FunctionKind::silu:
      for (std::int64_t i = 0; i < n; ++i) y[i] = silu_of(x[0][i]);
      return;
    case FunctionKind::gated_gelu:
      for (std::int64_t i = 0; i < n; ++i) y[i] = gelu_of(x[0][i]) * x[1][i];
      return;
    case FunctionKind::gated_silu:
      for (std::int64_t i = 0; i < n; ++i) y[i] = silu_of(x[0][i]) * x[1][i];
      return;
    case FunctionKind::square_of_difference:
      for (std::int64_t i = 0; i < n; ++i) y[i] = (x[0][i] - x[1][i]) * (x[0][i] - x[1][i]);
      return;
    case FunctionKind::mixed: {
      for (std::int64_t i = 0; i < n; ++i) y[i] = 0.5f;
      for (std::size_t k = 0; k < operands; ++k)
        if (w.saved[k])
          for (std::int64_t i = 0; i < n; ++i) y[i] *= factor_of(x[k][i]);
      for (std::size_t k = 0; k < operands; ++k)
        if (!w.saved[k])
          for (std::int64_t i = 0; i < n; ++i) y[i] += w.linear[k] * x[k][i];
      return;
    }
  }
}

/// d = dy times the derivative by operand k.
TURNPOINT_CLONES void slopes(FunctionKind kind, const Weights& w, const Operands& x, std::size_t operands,
                             const float* y, const float* dy, std::size_t k, std::int64_t n, float* d) {
  const auto times = [&](float weight) {
    for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * weight;
  };
  switch (kind) {
    case FunctionKind::sum: times(1); return;
    case FunctionKind::difference: times(w.minus[k]); return;
    case FunctionKind::linear: times(w.linear[k]); return;
    case FunctionKind::relu:
      for (std::int64_t i = 0; i < n; ++i) d[i] = y[i] > 0 ? dy[i] : 0;
      return;
    case FunctionKind::tanh:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * (1 - y[i] * y[i]);
      return;
    case FunctionKind::tanh_of_linear:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * (1 - y[i] * y[i]) * w.linear[k];
      return;
    case FunctionKind::sigmoid:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * y[i] * (1 - y[i]);
      return;
    case FunctionKind::exponential:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * y[i];
      return;
    case FunctionKind::product:
      times(1);
      for (std::size_t o = 0; o < operands; ++o)
        if (o != k)
          for (std::int64_t i = 0; i < n; ++i) d[i] *= x[o][i];
      return;
    case FunctionKind::gelu:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * gelu_slope_of(x[0][i]);
      return;
    case FunctionKind::silu:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * silu_slope_of(x[0][i]);
      return;
    case FunctionKind::gated_gelu:
      if (k == 0)
        for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * gelu_slope_of(x[0][i]) * x[1][i];
      else
        for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * gelu_of(x[0][i]);
      return;
    case FunctionKind::gated_silu:
      if (k == 0)
        for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * silu_slope_of(x[0][i]) * x[1][i];
      else
        for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * silu_of(x[0][i]);
      return;
    case FunctionKind::square_of_difference:
      for (std::int64_t i = 0; i < n; ++i) d[i] = dy[i] * (k == 0 ? 2.0f : -2.0f) * (x[0][i] - x[1][i]);
      return;
    case FunctionKind::mixed:
      if (!w.saved[k]) return times(w.linear[k]);
      for (std::int64_t i = 0; i < n; ++i) d[i] = 0.5f * dy[i] * (1.0f + 0.5f * x[k][i]);
      for (std::size_t o = 0; o < operands; ++o)
        if (o != k && w.saved[o])
          for (std::int64_t i = 0; i < n; ++i) d[i] *= factor_of(x[o][i]);
      return;
  }
}

TURNPOINT_CLONES void add_to(float* to, const float* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

TURNPOINT_CLONES float sum_of(const float* from, std::int64_t n) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += from[i];
  return sum;
}

/// The elements of one operand along a run, without a copy where they lie side by side.
const float* strip_of(const float* data, std::int64_t stride, std::int64_t n, Strip& room) {
  if (stride == 1) return data;
  for (std::int64_t i = 0; i < n; ++i) room.v[i] = data[i * stride];
  return room.v;
}

struct Call {
  std::unique_ptr<bool[]> inputs, wanted;
  Function function;

  explicit Call(const LocalOperator& at) {
    const Operator& op = at.op();
    const std::size_t n = op.inputs.size();
    inputs = std::make_unique<bool[]>(n);
    wanted = std::make_unique<bool[]>(n);
    for (std::size_t k = 0; k < n; ++k) {
      inputs[k] = op.inputs[k].saved;
      wanted[k] = at.input(k).requires_gradient && at.output(0).requires_gradient;
    }
    function = function_of(op.detail, {{inputs.get(), n}, {wanted.get(), n}, op.outputs[0].saved});
  }
};

/// Output first, then operands; -1: not there.
constexpr std::size_t kArrays = kMostOperands + 1;
using Arrays = std::array<std::vector<std::int64_t>, kArrays>;

std::int64_t global_index(const LocalOperator& at, const Region& region, std::int64_t local) {
  const Shape& shape = at.output(0).shape;
  std::int64_t index = 0, stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    index += (region.offset[d] + local % region.extent[d]) * stride;
    local /= region.extent[d];
    stride *= shape[d];
  }
  return index;
}

/// Drops elements from a local place on, `step` apart, of an output of this region; mask: 1 where one stays.
void drop(const LocalOperator& at, const Region& region, std::int64_t place, std::int64_t step, std::int64_t n,
          float* y, float* mask) {
  const std::int64_t last = region.extent.empty() ? 1 : region.extent.back();
  std::int64_t left = 0, index = 0;  // of a run of the last dimension, where neighbours have neighbouring indices
  for (std::int64_t i = 0; i < n; ++i, place += step, ++index) {
    if (left-- <= 0 || step != 1) {
      index = global_index(at, region, place);
      left = last - place % last - 1;
    }
    const bool stays =
        counter_uniform(at.seed, at.id.index + 0xD50ull, static_cast<std::uint64_t>(index)) >= double(0.2);
    y[i] = stays ? y[i] / (1 - kDropped) : 0;
    if (mask) mask[i * step] = stays ? 1 : 0;
  }
}

bool suits(const LocalOperator& at) {
  const Operator& op = at.op();
  return !op.inputs.empty() && op.inputs.size() <= kMostOperands && walks_all(at, op.outputs[0]) &&
         is_floating(at.output(0).type);
}

}  // namespace

bool elementwise_forward(const LocalOperator& at, Inputs in, Outputs out) {
  if (!suits(at) || std::find(in.begin(), in.end(), nullptr) != in.end()) return false;
  const Operator& op = at.op();
  const Call call(at);
  Weights weights;
  std::copy_n(call.inputs.get(), in.size(), weights.saved);
  Arrays strides;
  strides.fill(std::vector<std::int64_t>(at.loops.size(), 0));
  strides[0] = at.strides(op.outputs[0], *out[0]);
  for (std::size_t k = 0; k < in.size(); ++k) strides[k + 1] = at.strides(op.inputs[k], *in[k]);
  Nest<kArrays> nest(at.sizes(), strides);
  nest.simplify();
  const bool masked = op.outputs.size() > 1;
  auto rooms = std::make_unique<Strip[]>(kMostOperands + 1);
  nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
    for (std::int64_t first = 0; first < count; first += kStrip) {
      const std::int64_t n = std::min(kStrip, count - first);
      Operands x{};
      for (std::size_t k = 0; k < in.size(); ++k)
        x[k] = strip_of(in[k]->data.data() + o[k + 1] + first * s[k + 1], s[k + 1], n, rooms[k]);
      float* to = out[0]->data.data() + o[0] + first * s[0];
      float* y = s[0] == 1 ? to : rooms[kMostOperands].v;
      values(call.function.kind, weights, x, in.size(), n, y);
      if (masked)
        drop(at, out[0]->region, o[0] + first * s[0], s[0], n, y,
             out[1] ? out[1]->as<float>() + o[0] + first * s[0] : nullptr);
      if (s[0] != 1)
        for (std::int64_t i = 0; i < n; ++i) to[i * s[0]] = y[i];
    }
  });
  return true;
}

bool elementwise_backward(const LocalOperator& at, Inputs in, Inputs out, Inputs gradient, Outputs result) {
  if (!gradient[0] || !suits(at)) return false;
  const Operator& op = at.op();
  const Call call(at);
  const bool masked = op.outputs.size() > 1, reads_output = op.outputs[0].saved;
  if ((reads_output && !out[0]) || (masked && !out[1])) return false;
  for (std::size_t k = 0; k < in.size(); ++k)
    if (op.inputs[k].saved && !in[k]) return false;
  Weights weights;
  std::copy_n(call.inputs.get(), in.size(), weights.saved);
  Arrays strides;
  strides.fill(std::vector<std::int64_t>(at.loops.size(), 0));
  strides[0] = at.strides(op.outputs[0], *gradient[0]);
  for (std::size_t k = 0; k < in.size(); ++k)
    if (in[k] || result[k]) strides[k + 1] = at.strides(op.inputs[k], in[k] ? *in[k] : *result[k]);
  Nest<kArrays> nest(at.sizes(), strides);
  nest.simplify();
  // Where an operand was repeated its gradient is a sum.
  std::array<bool, kMostOperands> summed{};
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (!result[k]) continue;
    for (std::size_t l = 0; l < at.loops.size(); ++l)
      summed[k] = summed[k] || (at.loops[l].size > 1 && strides[k + 1][l] == 0);
    if (summed[k]) result[k]->data.clear();
  }
  auto rooms = std::make_unique<Strip[]>(kMostOperands + 4);
  nest.for_each_row([&](const auto& o, std::int64_t count, const auto& s) {
    for (std::int64_t first = 0; first < count; first += kStrip) {
      const std::int64_t n = std::min(kStrip, count - first), place = o[0] + first * s[0];
      const float* dy = strip_of(gradient[0]->data.data() + place, s[0], n, rooms[kMostOperands]);
      if (masked) {
        float* scaled = rooms[kMostOperands + 1].v;
        const float* mask = out[1]->data.data() + place;
        for (std::int64_t i = 0; i < n; ++i) scaled[i] = dy[i] * mask[i * s[0]] / (1 - kDropped);
        dy = scaled;
      }
      const float* y = out[0] ? strip_of(out[0]->data.data() + place, s[0], n, rooms[kMostOperands + 2]) : nullptr;
      Operands x{};
      for (std::size_t k = 0; k < in.size(); ++k)
        if (in[k]) x[k] = strip_of(in[k]->data.data() + o[k + 1] + first * s[k + 1], s[k + 1], n, rooms[k]);
      for (std::size_t k = 0; k < in.size(); ++k) {
        if (!result[k]) continue;
        float* to = result[k]->data.data() + o[k + 1] + first * s[k + 1];
        float* d = s[k + 1] == 1 && !summed[k] ? to : rooms[kMostOperands + 3].v;
        slopes(call.function.kind, weights, x, in.size(), y, dy, k, n, d);
        if (d == to) continue;
        if (s[k + 1] == 1)
          add_to(to, d, n);
        else if (s[k + 1] == 0)
          *to += sum_of(d, n);
        else if (summed[k])
          for (std::int64_t i = 0; i < n; ++i) to[i * s[k + 1]] += d[i];
        else
          for (std::int64_t i = 0; i < n; ++i) to[i * s[k + 1]] = d[i];
      }
    }
  });
  return true;
}

}  // namespace turnpoint::step::fast
