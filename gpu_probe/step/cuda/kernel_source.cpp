// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/step/cuda/kernel_source.h"

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

// Over all threads of a block, a power of two of them; everyone gets it.
__device__ inline float block_sum(float x) {
  __shared__ float parts[1024];
  const unsigned me = threadIdx.y * blockDim.x + threadIdx.x;
  parts[me] = x;
  __syncthreads();
  for (unsigned half = blockDim.x * blockDim.y / 2; half > 0; half /= 2) {
    if (me < half) parts[me] += parts[me + half];
    __syncthreads();
  }
  x = parts[0];
  __syncthreads();
  return x;
}
__device__ inline float block_most(float x) {
  __shared__ float parts[1024];
  parts[threadIdx.x] = x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] = fmaxf(parts[threadIdx.x], parts[threadIdx.x + half]);
    __syncthreads();
  }
  x = parts[0];
  __syncthreads();
  return x;
}

extern "C" __global__ void hold(Hold h) {
  const i64 start = clock64();
  while (clock64() - start < h.cycles) {
  }
}

extern "C" __global__ void move(Move m) {
  for (i64 i = thread(); i < m.walk.count; i += threads()) {
    i64 o[2];
    offsets(m.walk, i, o);
    float x = m.wide_from ? m.wide_from[o[1]] : (float)m.from[o[1]];
    if (m.wide_to) {
      if (m.add) x += m.wide_to[o[0]];
      m.wide_to[o[0]] = x;
    } else {
      if (m.add) x += m.to[o[0]];
      m.to[o[0]] = x;
    }
  }
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
  for (int k = 0; k < n; ++k) {
    sum += x[k];
    linear += weight(k) * x[k];
  }
  switch (e.kind) {
    case 0: return sum;
    case 1: return 2.0f * x[0] - sum;
    case 2: return linear;
    case 3: {
      float product = 1;
      for (int k = 0; k < n; ++k) product *= x[k];
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
  for (int k = 0; k < n; ++k) {
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
      for (int i = 0; i < n; ++i) product *= i == k ? 1.0f : x[i];
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
  float others = 0.5f;
  for (int i = 0; i < n; ++i)
    if (i != k && (e.saved >> i & 1)) others *= factor(x[i]);
  return others * (1.0f + 0.5f * x[k]);
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

extern "C" __global__ void elementwise_forward(Elementwise e) {
  for (i64 i = thread(); i < e.walk.count; i += threads()) {
    i64 o[7];
    offsets(e.walk, i, o);
    float x[6];
    for (int k = 0; k < 6; ++k) x[k] = k < e.operands && e.x[k] ? (float)e.x[k][o[k + 1]] : 0.0f;
    float y = value_of(e, x);
    if (e.masked) {
      const bool kept = mixed(e.stream ^ (u64)place_in_whole(e.place, o[0])) >> 11 >= e.threshold;
      y = kept ? y * e.kept : 0.0f;
      if (e.to[1]) e.to[1][o[0]] = kept ? 1.0f : 0.0f;
    }
    e.to[0][o[0]] = e.floating ? y : floorf(fabsf(y));
  }
}

// What comes back to operand k at one element of the result.
__device__ inline float elementwise_slope(const Elementwise& e, const i64* o, const float* x, int k) {
  float dy = e.dy[o[0]];
  if (e.masked) dy *= e.mask[o[0]] * e.kept;
  return dy * slope_of(e, x, e.y ? (float)e.y[o[0]] : 0.0f, k);
}
extern "C" __global__ void elementwise_backward(Elementwise e) {
  for (i64 i = thread(); i < e.walk.count; i += threads()) {
    i64 o[7];
    offsets(e.walk, i, o);
    float x[6];
    for (int k = 0; k < 6; ++k) x[k] = k < e.operands && e.x[k] ? (float)e.x[k][o[k + 1]] : 0.0f;
    for (int k = 0; k < e.operands; ++k)
      if (e.to[k]) e.to[k][o[k + 1]] = elementwise_slope(e, o, x, k);
  }
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
    for (int k = 0; k < 6; ++k) x[k] = k < s.e.operands && s.e.x[k] ? (float)s.e.x[k][o[k + 2]] : 0.0f;
    return elementwise_slope(s.e, o + 1, x, (int)s.e.wanted);
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
    for (i64 i = (i64)blockIdx.y * 8 + threadIdx.y; i < r.inner.count; i += (i64)gridDim.y * 8) {
      offsets(r.inner, i, o);
      for (int a = 0; a < kArrays; ++a) o[a] += base[a];
      sum += f(o);
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

extern "C" __global__ void norm_rows(RowsOf r) {
  const i64 row = blockIdx.x;
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

extern "C" __global__ void softmax_forward(Soft s) {
  for (i64 row = blockIdx.x; row < s.rows.count; row += gridDim.x) {
    i64 base;
    offsets(s.rows, row, &base);
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

std::string step_kernels(ProbePrecision precision) {
  return std::string(kTypes) + (precision == ProbePrecision::bf16 ? kHalves : kFloats) + kArguments + kBasics +
         kElementwise + kSums + kRows + special_kernels();
}

}  // namespace turnpoint::step::in_cuda
