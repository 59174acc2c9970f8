// SPDX-License-Identifier: Apache-2.0
// The kernels as text, for the run-time compiler. They move 16 bytes per access where the shape allows it, sum in fp32,
// and touch memory as often as a framework's own kernels do: each operand once from memory, a second pass hits the
// cache.
#include "gpu_probe/cuda/kernel_source.h"

namespace turnpoint::probe::cuda {

namespace {

// No header is needed: bf16 is the upper half of a float.
constexpr const char* kBasics = R"(
typedef long long i64;
struct bf16 { unsigned short bits; };
__device__ inline float read(float x) { return x; }
__device__ inline float read(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ inline void write(float& to, float x) { to = x; }
__device__ inline void write(bf16& to, float x) {
  const unsigned u = __float_as_uint(x);
  to.bits = (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}
template <class T> struct alignas(16) Pack { static constexpr int n = 16 / sizeof(T); T x[16 / sizeof(T)]; };

// The threads that share a row: a warp, or the block.
struct Lanes { int index, count; };

template <class T, class F> __device__ inline void each(const T* a, i64 n, Lanes l, F f) {
  if (n % Pack<T>::n == 0) {
    const Pack<T>* p = (const Pack<T>*)a;
    for (i64 i = l.index; i < n / Pack<T>::n; i += l.count) {
      const Pack<T> v = p[i];
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) f(read(v.x[j]));
    }
  } else {
    for (i64 i = l.index; i < n; i += l.count) f(read(a[i]));
  }
}
template <class T, class F> __device__ inline void each(const T* a, const T* b, i64 n, Lanes l, F f) {
  if (n % Pack<T>::n == 0) {
    const Pack<T> *p = (const Pack<T>*)a, *q = (const Pack<T>*)b;
    for (i64 i = l.index; i < n / Pack<T>::n; i += l.count) {
      const Pack<T> v = p[i], w = q[i];
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) f(read(v.x[j]), read(w.x[j]));
    }
  } else {
    for (i64 i = l.index; i < n; i += l.count) f(read(a[i]), read(b[i]));
  }
}
template <class T, class F> __device__ inline void map(const T* a, T* to, i64 n, Lanes l, F f) {
  if (n % Pack<T>::n == 0) {
    const Pack<T>* p = (const Pack<T>*)a;
    Pack<T>* t = (Pack<T>*)to;
    for (i64 i = l.index; i < n / Pack<T>::n; i += l.count) {
      const Pack<T> v = p[i];
      Pack<T> r;
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) write(r.x[j], f(read(v.x[j])));
      t[i] = r;
    }
  } else {
    for (i64 i = l.index; i < n; i += l.count) write(to[i], f(read(a[i])));
  }
}
template <class T, class F> __device__ inline void map(const T* a, const T* b, T* to, i64 n, Lanes l, F f) {
  if (n % Pack<T>::n == 0) {
    const Pack<T> *p = (const Pack<T>*)a, *q = (const Pack<T>*)b;
    Pack<T>* t = (Pack<T>*)to;
    for (i64 i = l.index; i < n / Pack<T>::n; i += l.count) {
      const Pack<T> v = p[i], w = q[i];
      Pack<T> r;
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) write(r.x[j], f(read(v.x[j]), read(w.x[j])));
      t[i] = r;
    }
  } else {
    for (i64 i = l.index; i < n; i += l.count) write(to[i], f(read(a[i]), read(b[i])));
  }
}

struct Sum { static __device__ float zero() { return 0.0f; } static __device__ float join(float a, float b) { return a + b; } };
struct Most { static __device__ float zero() { return -3.4e38f; } static __device__ float join(float a, float b) { return fmaxf(a, b); } };
template <class Op> __device__ inline float over_warp(float x) {
  for (int d = 16; d > 0; d /= 2) x = Op::join(x, __shfl_xor_sync(0xffffffffu, x, d));
  return x;
}
template <class Op, bool kWarp> __device__ inline float over_row(float x) {
  x = over_warp<Op>(x);
  if (kWarp) return x;
  __shared__ float parts[32];
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
  __syncthreads();
  x = threadIdx.x % 32 < blockDim.x / 32 ? parts[threadIdx.x % 32] : Op::zero();
  return over_warp<Op>(x);
}
template <bool kWarp> __device__ inline Lanes lanes() {
  return kWarp ? Lanes{(int)threadIdx.x % 32, 32} : Lanes{(int)threadIdx.x, (int)blockDim.x};
}
template <bool kWarp> __device__ inline i64 my_row() {
  return kWarp ? (i64)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32 : (i64)blockIdx.x;
}
__device__ inline i64 thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ inline i64 threads() { return (i64)gridDim.x * blockDim.x; }
__device__ inline unsigned mixed(unsigned x) {
  x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; return x ^ x >> 16;
}
)";

constexpr const char* kRows = R"(
struct Soft { float most, sum; };
// Largest element and sum of exponentials in one pass over memory.
template <class T, bool kWarp> __device__ inline Soft soft(const T* x, i64 n, Lanes l) {
  float most = -3.4e38f, sum = 0;
  each(x, n, l, [&](float v) {
    if (v > most) { sum *= __expf(most - v); most = v; }
    sum += __expf(v - most);
  });
  const float all = over_row<Most, kWarp>(most);
  return {all, over_row<Sum, kWarp>(sum * __expf(most - all))};
}
template <class T, bool kWarp> __device__ void softmax(i64 rows, i64 n, const T* x, T* y) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  const Soft s = soft<T, kWarp>(x + row * n, n, lanes<kWarp>());
  const float scale = 1.0f / s.sum;
  map(x + row * n, y + row * n, n, lanes<kWarp>(), [=](float v) { return __expf(v - s.most) * scale; });
}
template <class T, bool kWarp> __device__ void softmax_backward(i64 rows, i64 n, const T* y, const T* dy, T* dx) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  float dot = 0;
  each(y + row * n, dy + row * n, n, lanes<kWarp>(), [&](float a, float b) { dot += a * b; });
  dot = over_row<Sum, kWarp>(dot);
  map(y + row * n, dy + row * n, dx + row * n, n, lanes<kWarp>(), [=](float a, float b) { return a * (b - dot); });
}
template <class T, bool kWarp> __device__ void layer_norm(i64 rows, i64 n, const T* x, T* y, float2* moments) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  float sum = 0, squares = 0;
  each(x + row * n, n, lanes<kWarp>(), [&](float v) { sum += v; squares += v * v; });
  const float mean = over_row<Sum, kWarp>(sum) / n;
  const float scale = rsqrtf(fmaxf(over_row<Sum, kWarp>(squares) / n - mean * mean, 0.0f) + 1e-5f);
  if (lanes<kWarp>().index == 0) moments[row] = make_float2(mean, scale);
  map(x + row * n, y + row * n, n, lanes<kWarp>(), [=](float v) { return (v - mean) * scale; });
}
template <class T, bool kWarp> __device__ void layer_norm_backward(i64 rows, i64 n, const T* x, const T* dy, T* dx,
                                                                   const float2* moments) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  const float mean = moments[row].x, scale = moments[row].y;
  float sum = 0, dot = 0;
  each(x + row * n, dy + row * n, n, lanes<kWarp>(), [&](float v, float g) { sum += g; dot += g * (v - mean) * scale; });
  sum = over_row<Sum, kWarp>(sum) / n;
  dot = over_row<Sum, kWarp>(dot) / n;
  map(x + row * n, dy + row * n, dx + row * n, n, lanes<kWarp>(),
      [=](float v, float g) { return scale * (g - sum - (v - mean) * scale * dot); });
}
template <class T, bool kWarp> __device__ void cross_entropy(i64 rows, i64 n, const T* x, const i64* label, float* loss) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  const Soft s = soft<T, kWarp>(x + row * n, n, lanes<kWarp>());
  if (lanes<kWarp>().index == 0) loss[row] = __logf(s.sum) + s.most - read(x[row * n + label[row]]);
}
template <class T, bool kWarp> __device__ void cross_entropy_backward(i64 rows, i64 n, const T* x, const i64* label, T* dx) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  const Soft s = soft<T, kWarp>(x + row * n, n, lanes<kWarp>());
  const float scale = 1.0f / s.sum;
  map(x + row * n, dx + row * n, n, lanes<kWarp>(), [=](float v) { return __expf(v - s.most) * scale; });
  if (kWarp) __syncwarp(); else __syncthreads();
  if (lanes<kWarp>().index == 0) {
    T& at = dx[row * n + label[row]];
    write(at, read(at) - 1.0f);
  }
}
template <class T, bool kWarp> __device__ void row_sum(i64 rows, i64 n, const T* x, float* y) {
  const i64 row = my_row<kWarp>();
  if (row >= rows) return;
  float sum = 0;
  each(x + row * n, n, lanes<kWarp>(), [&](float v) { sum += v; });
  sum = over_row<Sum, kWarp>(sum);
  if (lanes<kWarp>().index == 0) y[row] = sum;
}
// A block takes 32 packs of columns and every gridDim.y-th part of the rows; blockDim = (32, 8).
template <class T> __device__ void column_sum(i64 rows, i64 n, const T* x, float* y) {
  const int width = n % Pack<T>::n == 0 ? Pack<T>::n : 1;
  const i64 column = ((i64)blockIdx.x * 32 + threadIdx.x) * width;
  float sum[Pack<T>::n] = {};
  if (column < n)
    for (i64 r = (i64)blockIdx.y * blockDim.y + threadIdx.y; r < rows; r += (i64)gridDim.y * blockDim.y) {
      if (width == 1) { sum[0] += read(x[r * n + column]); continue; }
      const Pack<T> v = *(const Pack<T>*)(x + r * n + column);
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) sum[j] += read(v.x[j]);
    }
  __shared__ float parts[8][32];
  for (int j = 0; j < width; ++j) {
    __syncthreads();
    parts[threadIdx.y][threadIdx.x] = sum[j];
    __syncthreads();
    if (threadIdx.y == 0 && column < n) {
      float all = 0;
      for (int i = 0; i < blockDim.y; ++i) all += parts[i][threadIdx.x];
      atomicAdd(y + column + j, all);
    }
  }
}
)";

constexpr const char* kOthers = R"(
struct Operands { const void* in[16]; void* out[16]; int reads, writes; };
template <class T> __device__ void elementwise(i64 n, const Operands& o) {
  const i64 packs = n / Pack<T>::n;
  for (i64 i = thread(); i < packs; i += threads()) {
    float sum[Pack<T>::n];
#pragma unroll
    for (int j = 0; j < Pack<T>::n; ++j) sum[j] = 1.0f;
#pragma unroll 4
    for (int t = 0; t < o.reads; ++t) {
      const Pack<T> v = ((const Pack<T>*)o.in[t])[i];
#pragma unroll
      for (int j = 0; j < Pack<T>::n; ++j) sum[j] += read(v.x[j]);
    }
    Pack<T> r;
#pragma unroll
    for (int j = 0; j < Pack<T>::n; ++j) write(r.x[j], sum[j]);
    for (int t = 0; t < o.writes; ++t) ((Pack<T>*)o.out[t])[i] = r;
  }
  for (i64 i = packs * Pack<T>::n + thread(); i < n; i += threads()) {
    float sum = 1.0f;
    for (int t = 0; t < o.reads; ++t) sum += read(((const T*)o.in[t])[i]);
    for (int t = 0; t < o.writes; ++t) write(((T*)o.out[t])[i], sum);
  }
}
// Images as n planes of c channels. Sums of a channel in sums[c], sums[C + c]; grid (c, parts).
template <class T> __device__ void batch_norm_sums(i64 n, i64 c, i64 plane, const T* x, float* sums) {
  const i64 channel = blockIdx.x;
  float sum = 0, squares = 0;
  for (i64 i = blockIdx.y; i < n; i += gridDim.y)
    each(x + (i * c + channel) * plane, plane, lanes<false>(), [&](float v) { sum += v; squares += v * v; });
  sum = over_row<Sum, false>(sum);
  squares = over_row<Sum, false>(squares);
  if (threadIdx.x == 0) { atomicAdd(sums + channel, sum); atomicAdd(sums + c + channel, squares); }
}
__device__ inline float2 channel_moments(const float* sums, i64 c, i64 channel, float count) {
  const float mean = sums[channel] / count;
  return make_float2(mean, rsqrtf(fmaxf(sums[c + channel] / count - mean * mean, 0.0f) + 1e-5f));
}
template <class T> __device__ void batch_norm(i64 n, i64 c, i64 plane, const T* x, T* y, const float* sums) {
  for (i64 i = blockIdx.x; i < n * c; i += gridDim.x) {
    const float2 m = channel_moments(sums, c, i % c, (float)n * plane);
    map(x + i * plane, y + i * plane, plane, lanes<false>(), [=](float v) { return (v - m.x) * m.y; });
  }
}
template <class T> __device__ void batch_norm_backward_sums(i64 n, i64 c, i64 plane, const T* x, const T* dy,
                                                            const float* sums, float* gradients) {
  const i64 channel = blockIdx.x;
  const float2 m = channel_moments(sums, c, channel, (float)n * plane);
  float sum = 0, dot = 0;
  for (i64 i = blockIdx.y; i < n; i += gridDim.y)
    each(x + (i * c + channel) * plane, dy + (i * c + channel) * plane, plane, lanes<false>(),
         [&](float v, float g) { sum += g; dot += g * (v - m.x) * m.y; });
  sum = over_row<Sum, false>(sum);
  dot = over_row<Sum, false>(dot);
  if (threadIdx.x == 0) { atomicAdd(gradients + channel, sum); atomicAdd(gradients + c + channel, dot); }
}
template <class T> __device__ void batch_norm_backward(i64 n, i64 c, i64 plane, const T* x, const T* dy, T* dx,
                                                       const float* sums, const float* gradients) {
  const float count = (float)n * plane;
  for (i64 i = blockIdx.x; i < n * c; i += gridDim.x) {
    const float2 m = channel_moments(sums, c, i % c, count);
    const float sum = gradients[i % c] / count, dot = gradients[c + i % c] / count;
    map(x + i * plane, dy + i * plane, dx + i * plane, plane, lanes<false>(),
        [=](float v, float g) { return m.y * (g - sum - (v - m.x) * m.y * dot); });
  }
}
struct Pool { i64 planes; int h, w, p, q, r, s, stride_h, stride_w, pad_h, pad_w; };
template <class T> __device__ void pooling(const Pool& z, const T* x, T* y, int* chosen) {
  const i64 all = z.planes * z.p * z.q;
  for (i64 o = thread(); o < all; o += threads()) {
    const int j = (int)(o % z.q), i = (int)(o / z.q % z.p);
    const T* from = x + o / z.q / z.p * z.h * z.w;
    const int y0 = i * z.stride_h - z.pad_h, x0 = j * z.stride_w - z.pad_w;
    float most = -3.4e38f;
    int best = -1;
    for (int a = max(0, y0); a < min(z.h, y0 + z.r); ++a)
      for (int b = max(0, x0); b < min(z.w, x0 + z.s); ++b) {
        const float v = read(from[(i64)a * z.w + b]);
        if (v > most) { most = v; best = a * z.w + b; }
      }
    write(y[o], best < 0 ? 0.0f : most);
    chosen[o] = best;
  }
}
// Every input asks the windows over it whether they chose it.
template <class T> __device__ void pooling_backward(const Pool& z, const int* chosen, const T* dy, T* dx) {
  const i64 all = z.planes * z.h * z.w;
  for (i64 e = thread(); e < all; e += threads()) {
    const int b = (int)(e % z.w), a = (int)(e / z.w % z.h);
    const i64 plane = e / z.w / z.h;
    const int i0 = max(0, (a + z.pad_h - z.r) / z.stride_h), i1 = min(z.p - 1, (a + z.pad_h) / z.stride_h);
    const int j0 = max(0, (b + z.pad_w - z.s) / z.stride_w), j1 = min(z.q - 1, (b + z.pad_w) / z.stride_w);
    float sum = 0;
    for (int i = i0; i <= i1; ++i)
      for (int j = j0; j <= j1; ++j) {
        const i64 o = (plane * z.p + i) * z.q + j;
        if (chosen[o] == a * z.w + b) sum += read(dy[o]);
      }
    write(dx[e], sum);
  }
}
template <class T> __device__ void embedding(i64 n, const T* table, const i64* index, T* y) {
  map(table + index[blockIdx.x] * n, y + blockIdx.x * n, n, lanes<false>(), [](float v) { return v; });
}
template <class T> __device__ void embedding_backward(i64 n, const i64* index, const T* dy, float* dtable) {
  float* to = dtable + index[blockIdx.x] * n;
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(to + i, read(dy[blockIdx.x * n + i]));
}
// bf16: the weight is a copy of the fp32 master.
template <class T> __device__ void adam(i64 n, const T* g, T* w, float* master, float* m, float* v) {
  for (i64 i = thread(); i < n / 4; i += threads()) {
    float4 weight = ((float4*)master)[i], mean = ((float4*)m)[i], variance = ((float4*)v)[i];
    float* a[3] = {&weight.x, &mean.x, &variance.x};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float x = read(g[4 * i + j]);
      a[1][j] = 0.9f * a[1][j] + 0.1f * x;
      a[2][j] = 0.999f * a[2][j] + 0.001f * x * x;
      a[0][j] -= 1e-3f * (a[1][j] * 10.0f) / (sqrtf(a[2][j] * 1000.0f) + 1e-8f);
      if (sizeof(T) == 2) write(w[4 * i + j], a[0][j]);
    }
    ((float4*)master)[i] = weight;
    ((float4*)m)[i] = mean;
    ((float4*)v)[i] = variance;
  }
  for (i64 i = n / 4 * 4 + thread(); i < n; i += threads()) {
    const float x = read(g[i]);
    m[i] = 0.9f * m[i] + 0.1f * x;
    v[i] = 0.999f * v[i] + 0.001f * x * x;
    master[i] -= 1e-3f * (m[i] * 10.0f) / (sqrtf(v[i] * 1000.0f) + 1e-8f);
    if (sizeof(T) == 2) write(w[i], master[i]);
  }
}
template <class T> __device__ void fill(i64 n, unsigned seed, T* x) {
  for (i64 i = thread(); i < n; i += threads())
    write(x[i], (float)(mixed((unsigned)i ^ mixed(seed + (unsigned)(i >> 32))) >> 8) * 0x1p-24f - 0.5f);
}
extern "C" __global__ void fill_index(i64 n, unsigned seed, i64 below, i64* x) {
  for (i64 i = thread(); i < n; i += threads()) x[i] = (i64)(((unsigned long long)mixed((unsigned)i + seed) * below) >> 32);
}
// Holds the stream until the work to be timed is queued behind it.
extern "C" __global__ void spin(i64 nanoseconds) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < (unsigned long long)nanoseconds);
}
extern "C" __global__ void nothing() {}
)";

// NAME_f32, NAME_bf16 and, for rows, NAME_warp_f32 and NAME_warp_bf16.
constexpr const char* kNames = R"(
#define TWICE(NAME, PARAMETERS32, PARAMETERS16, ARGUMENTS) \
  extern "C" __global__ void NAME##_f32 PARAMETERS32 { NAME<float> ARGUMENTS; } \
  extern "C" __global__ void NAME##_bf16 PARAMETERS16 { NAME<bf16> ARGUMENTS; }
#define ROWS(NAME, PARAMETERS32, PARAMETERS16, ARGUMENTS) \
  extern "C" __global__ void __launch_bounds__(1024) NAME##_f32 PARAMETERS32 { NAME<float, false> ARGUMENTS; } \
  extern "C" __global__ void __launch_bounds__(1024) NAME##_bf16 PARAMETERS16 { NAME<bf16, false> ARGUMENTS; } \
  extern "C" __global__ void NAME##_warp_f32 PARAMETERS32 { NAME<float, true> ARGUMENTS; } \
  extern "C" __global__ void NAME##_warp_bf16 PARAMETERS16 { NAME<bf16, true> ARGUMENTS; }
ROWS(softmax, (i64 r, i64 n, const float* x, float* y), (i64 r, i64 n, const bf16* x, bf16* y), (r, n, x, y))
ROWS(softmax_backward, (i64 r, i64 n, const float* y, const float* dy, float* dx),
     (i64 r, i64 n, const bf16* y, const bf16* dy, bf16* dx), (r, n, y, dy, dx))
ROWS(layer_norm, (i64 r, i64 n, const float* x, float* y, float2* m), (i64 r, i64 n, const bf16* x, bf16* y, float2* m),
     (r, n, x, y, m))
ROWS(layer_norm_backward, (i64 r, i64 n, const float* x, const float* dy, float* dx, const float2* m),
     (i64 r, i64 n, const bf16* x, const bf16* dy, bf16* dx, const float2* m), (r, n, x, dy, dx, m))
ROWS(cross_entropy, (i64 r, i64 n, const float* x, const i64* l, float* y),
     (i64 r, i64 n, const bf16* x, const i64* l, float* y), (r, n, x, l, y))
ROWS(cross_entropy_backward, (i64 r, i64 n, const float* x, const i64* l, float* y),
     (i64 r, i64 n, const bf16* x, const i64* l, bf16* y), (r, n, x, l, y))
ROWS(row_sum, (i64 r, i64 n, const float* x, float* y), (i64 r, i64 n, const bf16* x, float* y), (r, n, x, y))
TWICE(column_sum, (i64 r, i64 n, const float* x, float* y), (i64 r, i64 n, const bf16* x, float* y), (r, n, x, y))
TWICE(elementwise, (i64 n, Operands o), (i64 n, Operands o), (n, o))
TWICE(batch_norm_sums, (i64 n, i64 c, i64 p, const float* x, float* s), (i64 n, i64 c, i64 p, const bf16* x, float* s),
      (n, c, p, x, s))
TWICE(batch_norm, (i64 n, i64 c, i64 p, const float* x, float* y, const float* s),
      (i64 n, i64 c, i64 p, const bf16* x, bf16* y, const float* s), (n, c, p, x, y, s))
TWICE(batch_norm_backward_sums, (i64 n, i64 c, i64 p, const float* x, const float* dy, const float* s, float* g),
      (i64 n, i64 c, i64 p, const bf16* x, const bf16* dy, const float* s, float* g), (n, c, p, x, dy, s, g))
TWICE(batch_norm_backward, (i64 n, i64 c, i64 p, const float* x, const float* dy, float* dx, const float* s, const float* g),
      (i64 n, i64 c, i64 p, const bf16* x, const bf16* dy, bf16* dx, const float* s, const float* g),
      (n, c, p, x, dy, dx, s, g))
TWICE(pooling, (Pool z, const float* x, float* y, int* k), (Pool z, const bf16* x, bf16* y, int* k), (z, x, y, k))
TWICE(pooling_backward, (Pool z, const int* k, const float* dy, float* dx), (Pool z, const int* k, const bf16* dy, bf16* dx),
      (z, k, dy, dx))
TWICE(embedding, (i64 n, const float* t, const i64* k, float* y), (i64 n, const bf16* t, const i64* k, bf16* y), (n, t, k, y))
TWICE(embedding_backward, (i64 n, const i64* k, const float* dy, float* dt), (i64 n, const i64* k, const bf16* dy, float* dt),
      (n, k, dy, dt))
TWICE(adam, (i64 n, const float* g, float* w, float* a, float* m, float* v),
      (i64 n, const bf16* g, bf16* w, float* a, float* m, float* v), (n, g, w, a, m, v))
TWICE(fill, (i64 n, unsigned seed, float* x), (i64 n, unsigned seed, bf16* x), (n, seed, x))
)";

}  // namespace

std::string kernel_source() { return std::string(kBasics) + kRows + kOthers + kNames; }

}  // namespace turnpoint::probe::cuda
