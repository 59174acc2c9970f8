// SPDX-License-Identifier: Apache-2.0
// Kernels of elementwise functions.
#include "gpu_probe/step/cuda/kernel_source.h"

namespace turnpoint::step::in_cuda {

namespace {

// The order of kinds is that of FunctionKind (kernels/functions.h).
constexpr const char* kElementwise = R"(
__device__ inline float weight(int k) { return 1.0f - 0.1f * (float)(k % 8); }
__device__ inline float logistic(float v) { return 1.0f / (1.0f + expf(-v)); }
__device__ inline float gelu(float v) { return 0.5f * v * (1.0f + erff(v * 0.70710678f)); }
__device__ inline float gelu_slope(float v) {
  return 0.5f * (1.0f + erff(v * 0.70710678f)) + v * expf(-0.5f * v * v) * 0.39894228f;
}
__device__ inline float silu(float v) { return v * logistic(v); }
__device__ inline float silu_slope(float v) {
  const float s = logistic(v);
  return s * (1.0f + v * (1.0f - s));
}
__device__ inline float factor(float v) { return 1.0f + v + 0.25f * v * v; }

__device__ inline float value_of(const Elementwise& e, const float* x) {
  const int n = (int)e.operands;
  float sum = 0, linear = 0;
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    if (k >= n) break;
    sum += x[k];
    linear += weight(k) * x[k];
  }
  switch (e.kind) {
    case 0: return sum;
    case 1: return 2.0f * x[0] - sum;
    case 2: return linear;
    case 3: {
      float product = 1;
#pragma unroll
      for (int k = 0; k < 6; ++k) product *= k < n ? x[k] : 1.0f;
      return product;
    }
    case 4: return fmaxf(0.0f, sum);
    case 5: return tanhf(sum);
    case 6: return tanhf(linear);
    case 7: return logistic(sum);
    case 8: return expf(sum);
    case 9: return gelu(x[0]);
    case 10: return silu(x[0]);
    case 11: return silu(x[0]) * x[1];
    case 12: return gelu(x[0]) * x[1];
    case 13: return (x[0] - x[1]) * (x[0] - x[1]);
  }
  float saved = 1, total = 0;
#pragma unroll
  for (int k = 0; k < 6; ++k) {
    if (k >= n) break;
    if (e.saved >> k & 1) saved *= factor(x[k]);
    else total += weight(k) * x[k];
  }
  return total + 0.5f * saved;
}

__device__ inline float slope_of(const Elementwise& e, const float* x, float y, int k) {
  const int n = (int)e.operands;
  switch (e.kind) {
    case 0: return 1;
    case 1: return k == 0 ? 1.0f : -1.0f;
    case 2: return weight(k);
    case 3: {
      float product = 1;
#pragma unroll
      for (int i = 0; i < 6; ++i) product *= i == k || i >= n ? 1.0f : x[i];
      return product;
    }
    case 4: return y > 0 ? 1.0f : 0.0f;
    case 5: return 1.0f - y * y;
    case 6: return (1.0f - y * y) * weight(k);
    case 7: return y * (1.0f - y);
    case 8: return y;
    case 9: return gelu_slope(x[0]);
    case 10: return silu_slope(x[0]);
    case 11: return k == 0 ? silu_slope(x[0]) * x[1] : silu(x[0]);
    case 12: return k == 0 ? gelu_slope(x[0]) * x[1] : gelu(x[0]);
    case 13: return (k == 0 ? 2.0f : -2.0f) * (x[0] - x[1]);
  }
  if (!(e.saved >> k & 1)) return weight(k);
  float others = 0.5f, mine = 0;
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    if (i < n && i != k && (e.saved >> i & 1)) others *= factor(x[i]);
    if (i == k) mine = x[i];
  }
  return others * (1.0f + 0.5f * mine);
}

__device__ inline u64 mixed(u64 x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}
__device__ inline i64 place_in_whole(const Box& b, i64 local) {
  i64 index = 0, stride = 1;
  for (int d = (int)b.rank - 1; d >= 0; --d) {
    index += (b.offset[d] + local % b.extent[d]) * stride;
    local /= b.extent[d];
    stride *= b.whole[d];
  }
  return index;
}

// Where arrays lie so that several of their elements can be read at once, a step of the walk is as many.
template <bool kPacks> __device__ inline void computed(const Elementwise& e) {
  constexpr int kEach = kPacks ? kPack : 1;
  for (i64 i = thread(); i < e.walk.count; i += threads()) {
    i64 o[7];
    offsets(e.walk, i, o);
    float x[6][kPack], y[kPack], mask[kPack];
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      if (k < e.operands && e.x[k]) read(e.x[k], o[k + 1], kPacks, x[k]);
      else
        for (int j = 0; j < kEach; ++j) x[k][j] = 0;
    }
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
      const float one[6] = {x[0][j], x[1][j], x[2][j], x[3][j], x[4][j], x[5][j]};
      y[j] = value_of(e, one);
      if (e.masked) {
        const bool kept = mixed(e.stream ^ (u64)place_in_whole(e.place, o[0] + j)) >> 11 >= e.threshold;
        mask[j] = kept ? 1.0f : 0.0f;
        y[j] = kept ? y[j] * e.kept : 0.0f;
      }
      if (!e.floating) y[j] = floorf(fabsf(y[j]));
    }
    if (e.masked && e.to[1]) write(e.to[1], o[0], kPacks, mask);
    write(e.to[0], o[0], kPacks, y);
  }
}
extern "C" __global__ void elementwise_forward(Elementwise e) {
  if (e.packs) computed<true>(e);
  else computed<false>(e);
}

// What comes back to each operand at an element of the result.
template <bool kPacks> __device__ inline void returned(const Elementwise& e) {
  constexpr int kEach = kPacks ? kPack : 1;
  for (i64 i = thread(); i < e.walk.count; i += threads()) {
    i64 o[7];
    offsets(e.walk, i, o);
    float x[6][kPack], y[kPack] = {0, 0, 0, 0}, dy[kPack], mask[kPack];
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      if (k < e.operands && e.x[k]) read(e.x[k], o[k + 1], kPacks, x[k]);
      else
        for (int j = 0; j < kEach; ++j) x[k][j] = 0;
    }
    if (e.y) read(e.y, o[0], kPacks, y);
    read(e.dy, o[0], kPacks, dy);
    if (e.masked) {
      read(e.mask, o[0], kPacks, mask);
#pragma unroll
      for (int j = 0; j < kEach; ++j) dy[j] *= mask[j] * e.kept;
    }
#pragma unroll
    for (int k = 0; k < 6; ++k) {
      if (k >= e.operands || !e.to[k]) continue;
      float dx[kPack];
#pragma unroll
      for (int j = 0; j < kEach; ++j) {
        const float one[6] = {x[0][j], x[1][j], x[2][j], x[3][j], x[4][j], x[5][j]};
        dx[j] = dy[j] * slope_of(e, one, y[j], k);
      }
      write(e.to[k], o[k + 1], kPacks, dx);
    }
  }
}
extern "C" __global__ void elementwise_backward(Elementwise e) {
  if (e.packs) returned<true>(e);
  else returned<false>(e);
}
)";

}  // namespace

std::string elementwise_kernels() { return kElementwise; }

}  // namespace turnpoint::step::in_cuda
