// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/kernel_source.h"

#include <fmt/format.h>

#include "gpu_probe/step/cuda/arguments.h"

namespace turnpoint::step::in_cuda {

namespace {

constexpr const char* kTypes = "typedef long long i64;\ntypedef unsigned long long u64;\n";

// What the device keeps of a number; kernels compute in float. No header is needed: bf16 is the upper half of a float,
// and a number becomes the nearest one, the even one of two that are as near.
constexpr const char* kFloats = "typedef float real;\n";
constexpr const char* kHalves = R"(
struct real {
  unsigned short bits;
  __device__ inline operator float() const { return __uint_as_float((unsigned)bits << 16); }
  __device__ inline real& operator=(float x) {
    const unsigned u = __float_as_uint(x);
    const bool none = (u & 0x7fffffffu) > 0x7f800000u;
    bits = (unsigned short)(none ? (u >> 16) | 0x40u : (u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
    return *this;
  }
  __device__ inline real& operator+=(float x) { return *this = (float)*this + x; }
};
)";

constexpr const char* kBasics = R"(
__device__ inline i64 thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 threads() { return (i64)gridDim.x * blockDim.x; }

// Offsets of step `index` of a walk in its arrays.
template <int kArrays> __device__ inline void offsets(const Walk<kArrays>& walk, i64 index, i64* o) {
  if (walk.loops == 1) {
    for (int a = 0; a < kArrays; ++a) o[a] = index * walk.stride[a][0];
    return;
  }
  for (int a = 0; a < kArrays; ++a) o[a] = 0;
  if (walk.count <= 0x7fffffff) {
    unsigned rest = (unsigned)index;
    for (int l = 0; l < walk.loops; ++l) {
      const unsigned size = (unsigned)walk.size[l], next = rest / size;
      const i64 at = rest - next * size;
      for (int a = 0; a < kArrays; ++a) o[a] += at * walk.stride[a][l];
      rest = next;
    }
    return;
  }
  for (int l = 0; l < walk.loops; ++l) {
    const i64 next = index / walk.size[l], at = index - next * walk.size[l];
    for (int a = 0; a < kArrays; ++a) o[a] += at * walk.stride[a][l];
    index = next;
  }
}

struct Sum {
  static __device__ float none() { return 0.0f; }
  static __device__ float join(float a, float b) { return a + b; }
};
struct Most {
  static __device__ float none() { return -3.4e38f; }
  static __device__ float join(float a, float b) { return fmaxf(a, b); }
};
template <class Of> __device__ inline float over_warp(float x) {
  for (int lane = 16; lane > 0; lane /= 2) x = Of::join(x, __shfl_xor_sync(0xffffffffu, x, lane));
  return x;
}
// Over all threads of a block, a power of two of them and at least a warp; everyone gets it.
template <class Of> __device__ inline float over_block(float x) {
  __shared__ float parts[32];
  const unsigned me = threadIdx.y * blockDim.x + threadIdx.x, warps = blockDim.x * blockDim.y / 32;
  x = over_warp<Of>(x);
  if (warps == 1) return x;
  if (me % 32 == 0) parts[me / 32] = x;
  __syncthreads();
  x = over_warp<Of>(me % 32 < warps ? parts[me % 32] : Of::none());
  __syncthreads();
  return x;
}
__device__ inline float block_sum(float x) { return over_block<Sum>(x); }
__device__ inline float block_most(float x) { return over_block<Most>(x); }

// Several numbers that lie together, read or written at once.
template <class T> struct alignas(kPack * sizeof(T)) Pack {
  T x[kPack];
};
template <class T> __device__ inline void read(const T* from, i64 o, bool packs, float* to) {
  if (!packs) {
    to[0] = from[o];
    return;
  }
  const Pack<T> all = *(const Pack<T>*)(from + o);
#pragma unroll
  for (int j = 0; j < kPack; ++j) to[j] = all.x[j];
}
template <class T> __device__ inline void write(T* to, i64 o, bool packs, const float* from) {
  if (!packs) {
    to[o] = from[0];
    return;
  }
  Pack<T> all;
#pragma unroll
  for (int j = 0; j < kPack; ++j) all.x[j] = from[j];
  *(Pack<T>*)(to + o) = all;
}

extern "C" __global__ void hold(Hold h) {
  const i64 start = clock64();
  while (clock64() - start < h.cycles) {
  }
}

template <bool kPacks> __device__ inline void moved(const Move& m) {
  for (i64 i = thread(); i < m.walk.count; i += threads()) {
    i64 o[2];
    offsets(m.walk, i, o);
    float x[kPack], to[kPack];
    if (m.wide_from) read(m.wide_from, o[1], kPacks, x);
    else read(m.from, o[1], kPacks, x);
    if (m.add) {
      if (m.wide_to) read((const float*)m.wide_to, o[0], kPacks, to);
      else read((const real*)m.to, o[0], kPacks, to);
#pragma unroll
      for (int j = 0; j < (kPacks ? kPack : 1); ++j) x[j] += to[j];
    }
    if (m.wide_to) write(m.wide_to, o[0], kPacks, x);
    else write(m.to, o[0], kPacks, x);
  }
}
extern "C" __global__ void move(Move m) {
  if (m.packs) moved<true>(m);
  else moved<false>(m);
}

extern "C" __global__ void update(Rule r) {
  for (i64 i = thread(); i < r.count; i += threads()) {
    const float g = r.g[i];
    float w = r.master ? r.master[i] : (float)r.w[i];
    if (r.rule == 0) {
      w -= r.rate * g;
    } else if (r.rule == 1) {
      const float m = 0.9f * r.m[i] + g;
      r.m[i] = m;
      w -= r.rate * m;
    } else {
      const float m = 0.9f * r.m[i] + 0.1f * g, v = 0.999f * r.v[i] + 0.001f * g * g;
      r.m[i] = m;
      r.v[i] = v;
      w -= r.rate * m / (sqrtf(v) + 1e-8f);
    }
    if (r.master) r.master[i] = w;
    r.w[i] = w;
  }
}

extern "C" __global__ void weighted_sum(Weighted w) {
  __shared__ double parts[256];
  double sum = 0;
  for (i64 i = thread(); i < w.count; i += threads()) sum += (double)w.a[i] * (double)w.b[i];
  parts[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(w.to, parts[0]);
}
)";

constexpr const char* kSums = R"(
struct Summand {
  const Sums& s;
  static constexpr int kArrays = 5;
  __device__ float operator()(const i64* o) const {
    switch (s.what) {
      case 0: return s.a[o[1]];
      case 1: return s.a[o[1]] * s.a[o[1]];
      case 2: return s.a[o[1]] * s.b[o[2]];
      case 3: return s.a[o[1]] * (s.b[o[2]] - s.m[o[3]]) * s.d[o[3]];
      case 4: {
        const float d = s.a[o[1]] - s.m[o[3]];
        return d * d;
      }
      case 5: return s.a[o[1]] * s.s[o[4]];
      case 7: return s.m[o[3]];
      default: return s.a[o[1]] * s.s[o[4]] * (s.b[o[2]] - s.m[o[3]]) * s.d[o[3]];
    }
  }
};
struct ElementwiseSummand {
  const ElementwiseSums& s;
  static constexpr int kArrays = 8;
  __device__ float operator()(const i64* o) const {
    float x[6];
#pragma unroll
    for (int k = 0; k < 6; ++k) x[k] = k < s.e.operands && s.e.x[k] ? (float)s.e.x[k][o[k + 2]] : 0.0f;
    float dy = s.e.dy[o[1]];
    if (s.e.masked) dy *= s.e.mask[o[1]] * s.e.kept;
    return dy * slope_of(s.e, x, s.e.y ? (float)s.e.y[o[1]] : 0.0f, (int)s.e.wanted);
  }
};

template <int kArrays> __device__ inline void put(const Reduce<kArrays>& r, i64 o, float x) {
  if (r.add) atomicAdd(r.wide + o, x * r.factor);
  else if (r.wide) r.wide[o] = x * r.factor;
  else r.to[o] = x * r.factor;
}
// A block for each result; blocks along y share it.
template <class F, int kArrays> __device__ inline void sum_rows(const Reduce<kArrays>& r, const F& f) {
  for (i64 row = blockIdx.x; row < r.outer.count; row += gridDim.x) {
    i64 base[kArrays], o[kArrays];
    offsets(r.outer, row, base);
    float sum = 0;
    for (i64 i = (i64)blockIdx.y * blockDim.x + threadIdx.x; i < r.inner.count; i += (i64)gridDim.y * blockDim.x) {
      offsets(r.inner, i, o);
      for (int a = 0; a < kArrays; ++a) o[a] += base[a];
      sum += f(o);
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) put(r, base[0], sum);
  }
}
// Neighbouring threads sum neighbouring results; blocks along y share them.
template <class F, int kArrays> __device__ inline void sum_columns(const Reduce<kArrays>& r, const F& f) {
  __shared__ float parts[8][32];
  const i64 column = (i64)blockIdx.x * 32 + threadIdx.x;
  i64 base[kArrays], o[kArrays];
  float sum = 0;
  if (column < r.outer.count) {
    offsets(r.outer, column, base);
    const i64 first = (i64)blockIdx.y * 8 + threadIdx.y, step = (i64)gridDim.y * 8;
    if (r.inner.loops == 1) {  // by the same distance each time
      for (int a = 0; a < kArrays; ++a) o[a] = base[a] + first * r.inner.stride[a][0];
#pragma unroll 4
      for (i64 i = first; i < r.inner.count; i += step) {
        sum += f(o);
        for (int a = 0; a < kArrays; ++a) o[a] += step * r.inner.stride[a][0];
      }
    } else {
      for (i64 i = first; i < r.inner.count; i += step) {
        offsets(r.inner, i, o);
        for (int a = 0; a < kArrays; ++a) o[a] += base[a];
        sum += f(o);
      }
    }
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < r.outer.count) {
    for (int i = 1; i < 8; ++i) sum += parts[i][threadIdx.x];
    put(r, base[0], sum);
  }
}
extern "C" __global__ void sums_rows(Sums s) { sum_rows(s.of, Summand{s}); }
extern "C" __global__ void sums_columns(Sums s) { sum_columns(s.of, Summand{s}); }
extern "C" __global__ void elementwise_sums_rows(ElementwiseSums s) { sum_rows(s.of, ElementwiseSummand{s}); }
extern "C" __global__ void elementwise_sums_columns(ElementwiseSums s) { sum_columns(s.of, ElementwiseSummand{s}); }

// The largest, and in backward the first of the largest, which gets it all.
extern "C" __global__ void largest(Sums s) {
  for (i64 i = thread(); i < s.of.outer.count; i += threads()) {
    i64 base[5], o[5], best = -1;
    offsets(s.of.outer, i, base);
    for (i64 j = 0; j < s.of.inner.count; ++j) {
      offsets(s.of.inner, j, o);
      if (best < 0 || s.a[base[1] + o[1]] > s.a[best]) best = base[1] + o[1];
    }
    if (s.what == 0) s.of.to[base[0]] = s.a[best];
    else s.of.to[best] = s.b[base[0]];
  }
}
// dx = dy x factor, of squares x 2 x.
extern "C" __global__ void spread(Sums s) {
  for (i64 i = thread(); i < s.of.outer.count; i += threads()) {
    i64 o[5];
    offsets(s.of.outer, i, o);
    s.of.to[o[0]] = s.b[o[1]] * s.of.factor * (s.what == 1 ? 2.0f * s.a[o[0]] : 1.0f);
  }
}
)";

}  // namespace

std::string step_kernels(ProbePrecision precision) {
  const std::string sizes = fmt::format("constexpr int kPack = {}, kHeld = {};\n", kPack, kHeld);
  return kTypes + sizes + (precision == ProbePrecision::bf16 ? kHalves : kFloats) + kArguments + kBasics +
         elementwise_kernels() + kSums + row_kernels() + special_kernels();
}

}  // namespace turnpoint::step::in_cuda
