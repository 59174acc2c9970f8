// SPDX-License-Identifier: Apache-2.0
// Kernels of what is normalised: means, deviations and exponentials over rows or over any sets of elements.
#include "gpu_probe/step/cuda/kernel_source.h"

namespace turnpoint::step::in_cuda {

namespace {

constexpr const char* kRows = R"(
extern "C" __global__ void deviations(Sums s) {
  for (i64 i = thread(); i < s.of.outer.count; i += threads()) s.of.wide[i] = rsqrtf(s.of.wide[i] + s.of.factor);
}
extern "C" __global__ void normalise(Normalise n) {
  for (i64 i = thread(); i < n.walk.count; i += threads()) {
    i64 o[4];
    offsets(n.walk, i, o);
    const float normal = (n.x[o[0]] - n.m[o[1]]) * n.d[o[1]];
    n.to[o[0]] = normal * (n.scale ? (float)n.scale[o[2]] : 1.0f) + (n.bias ? (float)n.bias[o[3]] : 0.0f);
  }
}
extern "C" __global__ void normalise_backward(Normalise n) {
  for (i64 i = thread(); i < n.walk.count; i += threads()) {
    i64 o[4];
    offsets(n.walk, i, o);
    const float inverse = n.d[o[1]], normal = (n.x[o[0]] - n.m[o[1]]) * inverse;
    const float g = n.dy[o[0]] * (n.scale ? (float)n.scale[o[2]] : 1.0f);
    n.to[o[0]] = inverse * (g - (n.centred ? n.sum[o[1]] * n.share : 0.0f) - normal * n.sum_x[o[1]] * n.share);
  }
}

// A row of at most kHeld packs a thread, read once and kept.
struct Held {
  float x[kHeld][kPack];
  // f(place in the row, pack) for each pack of this thread.
  template <class F> __device__ static inline void each(i64 size, const F& f) {
#pragma unroll
    for (int h = 0; h < kHeld; ++h) {
      const i64 i = ((i64)h * blockDim.x + threadIdx.x) * kPack;
      if (i < size) f(i, h);
    }
  }
  template <class T> __device__ inline void take(const T* from, i64 size) {
    each(size, [&](i64 i, int h) { read(from, i, true, x[h]); });
  }
  template <class T> __device__ inline void give(T* to, i64 size) const {
    each(size, [&](i64 i, int h) { write(to, i, true, x[h]); });
  }
  // Over the whole row.
  template <class Of, class F> __device__ inline float over(i64 size, const F& f) const {
    float mine = Of::none();
    each(size, [&](i64, int h) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) mine = Of::join(mine, f(h, j));
    });
    return over_block<Of>(mine);
  }
  template <class F> __device__ inline void change(i64 size, const F& f) {
    each(size, [&](i64, int h) {
#pragma unroll
      for (int j = 0; j < kPack; ++j) x[h][j] = f(h, j);
    });
  }
};

__device__ inline void norm_held(const RowsOf& r, i64 row) {
  Held x, y;
  const float share = 1.0f / (float)r.size;
  x.take(r.x + row * r.size, r.size);
  const float mean = r.centred ? x.over<Sum>(r.size, [&](int h, int j) { return x.x[h][j]; }) * share : 0.0f;
  const float square = x.over<Sum>(r.size, [&](int h, int j) { return (x.x[h][j] - mean) * (x.x[h][j] - mean); });
  const float inverse = rsqrtf(square * share + r.epsilon);
  x.change(r.size, [&](int h, int j) { return (x.x[h][j] - mean) * inverse; });
  if (r.dy && threadIdx.x == 0) {
    r.m[row] = mean;
    r.d[row] = inverse;
  }
  if (!r.to) return;
  if (r.dy) {
    y.take(r.dy + row * r.size, r.size);
    if (r.scale) {
      Held scale;
      scale.take(r.scale, r.size);
      y.change(r.size, [&](int h, int j) { return y.x[h][j] * scale.x[h][j]; });
    }
    const float sum = r.centred ? y.over<Sum>(r.size, [&](int h, int j) { return y.x[h][j]; }) * share : 0.0f;
    const float sum_x = y.over<Sum>(r.size, [&](int h, int j) { return y.x[h][j] * x.x[h][j]; }) * share;
    x.change(r.size, [&](int h, int j) { return inverse * (y.x[h][j] - sum - x.x[h][j] * sum_x); });
  } else {
    if (r.scale) {
      y.take(r.scale, r.size);
      x.change(r.size, [&](int h, int j) { return x.x[h][j] * y.x[h][j]; });
    }
    if (r.bias) {
      y.take(r.bias, r.size);
      x.change(r.size, [&](int h, int j) { return x.x[h][j] + y.x[h][j]; });
    }
  }
  x.give(r.to + row * r.size, r.size);
}
__device__ inline void norm_row(const RowsOf& r, i64 row) {
  const real* x = r.x + row * r.size;
  const float share = 1.0f / (float)r.size;
  float mean = 0, square = 0;
  if (r.centred) {
    for (i64 i = threadIdx.x; i < r.size; i += blockDim.x) mean += x[i];
    mean = block_sum(mean) * share;
  }
  for (i64 i = threadIdx.x; i < r.size; i += blockDim.x) square += (x[i] - mean) * (x[i] - mean);
  const float inverse = rsqrtf(block_sum(square) * share + r.epsilon);
  if (!r.dy) {
    for (i64 i = threadIdx.x; i < r.size; i += blockDim.x)
      r.to[row * r.size + i] =
          (x[i] - mean) * inverse * (r.scale ? (float)r.scale[i] : 1.0f) + (r.bias ? (float)r.bias[i] : 0.0f);
    return;
  }
  if (threadIdx.x == 0) {
    r.m[row] = mean;
    r.d[row] = inverse;
  }
  if (!r.to) return;
  const real* dy = r.dy + row * r.size;
  float sum = 0, sum_x = 0;
  for (i64 i = threadIdx.x; i < r.size; i += blockDim.x) {
    const float g = dy[i] * (r.scale ? (float)r.scale[i] : 1.0f);
    sum += g;
    sum_x += g * (x[i] - mean) * inverse;
  }
  sum = r.centred ? block_sum(sum) * share : 0.0f;
  sum_x = block_sum(sum_x) * share;
  for (i64 i = threadIdx.x; i < r.size; i += blockDim.x)
    r.to[row * r.size + i] =
        inverse * (dy[i] * (r.scale ? (float)r.scale[i] : 1.0f) - sum - (x[i] - mean) * inverse * sum_x);
}

extern "C" __global__ void norm_rows(RowsOf r) {
  if (r.held) norm_held(r, blockIdx.x);
  else norm_row(r, blockIdx.x);
}

extern "C" __global__ void softmax_forward(Soft s) {
  for (i64 row = blockIdx.x; row < s.rows.count; row += gridDim.x) {
    i64 base;
    offsets(s.rows, row, &base);
    if (s.held) {
      Held x;
      x.take(s.y + base, s.size);
      const float largest = x.over<Most>(s.size, [&](int h, int j) { return x.x[h][j]; });
      const float all = x.over<Sum>(s.size, [&](int h, int j) { return expf(x.x[h][j] - largest); });
      const float log_all = logf(all), share = 1.0f / all;
      x.change(s.size, [&](int h, int j) {
        return s.logarithm ? x.x[h][j] - largest - log_all : expf(x.x[h][j] - largest) * share;
      });
      x.give(s.to + base, s.size);
      continue;
    }
    float most = -3.4e38f, sum = 0;
    for (i64 i = threadIdx.x; i < s.size; i += blockDim.x) most = fmaxf(most, s.y[base + i * s.stride]);
    most = block_most(most);
    for (i64 i = threadIdx.x; i < s.size; i += blockDim.x) sum += expf(s.y[base + i * s.stride] - most);
    sum = block_sum(sum);
    const float log_sum = logf(sum), inverse = 1.0f / sum;
    for (i64 i = threadIdx.x; i < s.size; i += blockDim.x) {
      const float shifted = s.y[base + i * s.stride] - most;
      s.to[base + i * s.stride] = s.logarithm ? shifted - log_sum : expf(shifted) * inverse;
    }
  }
}
extern "C" __global__ void softmax_backward(Soft s) {
  for (i64 row = blockIdx.x; row < s.rows.count; row += gridDim.x) {
    i64 base;
    offsets(s.rows, row, &base);
    if (s.held) {
      Held y, dy;
      y.take(s.y + base, s.size);
      dy.take(s.dy + base, s.size);
      const float all = y.over<Sum>(s.size, [&](int h, int j) { return s.logarithm ? dy.x[h][j] : dy.x[h][j] * y.x[h][j]; });
      y.change(s.size, [&](int h, int j) {
        return s.logarithm ? dy.x[h][j] - expf(y.x[h][j]) * all : y.x[h][j] * (dy.x[h][j] - all);
      });
      y.give(s.to + base, s.size);
      continue;
    }
    float sum = 0;
    for (i64 i = threadIdx.x; i < s.size; i += blockDim.x) {
      const i64 o = base + i * s.stride;
      sum += s.dy[o] * (s.logarithm ? 1.0f : (float)s.y[o]);
    }
    sum = block_sum(sum);
    for (i64 i = threadIdx.x; i < s.size; i += blockDim.x) {
      const i64 o = base + i * s.stride;
      s.to[o] = s.logarithm ? s.dy[o] - expf(s.y[o]) * sum : s.y[o] * (s.dy[o] - sum);
    }
  }
}
)";

}  // namespace

std::string row_kernels() { return kRows; }

}  // namespace turnpoint::step::in_cuda
