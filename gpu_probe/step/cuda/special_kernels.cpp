// SPDX-License-Identifier: Apache-2.0
// Kernels of single kinds of operators: losses, windows, look-ups, experts, recurrent cells.
#include "gpu_probe/step/cuda/kernel_source.h"

namespace turnpoint::step::in_cuda {

namespace {

constexpr const char* kLosses = R"(
__device__ inline i64 label_of(const Loss& l, i64 row) {
  const i64 here = (i64)fabsf(l.labels[row]) % l.all_classes - l.first_class;
  return here >= 0 && here < l.classes ? here : -1;
}
// The largest of a row, and the sum of exponentials beside it, in one reading: a sum is of numbers less what was the
// largest so far.
struct Exponentials {
  float most, sum;
  __device__ void take(float x) {
    if (x > most) {
      sum = sum * expf(most - x) + 1.0f;
      most = x;
    } else {
      sum += expf(x - most);
    }
  }
};
__device__ inline Exponentials row_exponentials(const real* x, i64 n) {
  constexpr int kAtOnce = 4;
  Exponentials mine[kAtOnce];
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) mine[j] = {-3.4e38f, 0.0f};
  i64 i = threadIdx.x;
  for (; i + (kAtOnce - 1) * (i64)blockDim.x < n; i += kAtOnce * (i64)blockDim.x) {
    float next[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) next[j] = x[i + j * (i64)blockDim.x];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) mine[j].take(next[j]);
  }
  for (; i < n; i += blockDim.x) mine[0].take(x[i]);
  float largest = mine[0].most, sum = 0;
#pragma unroll
  for (int j = 1; j < kAtOnce; ++j) largest = fmaxf(largest, mine[j].most);
  const float most = block_most(largest);
#pragma unroll
  for (int j = 0; j < kAtOnce; ++j) sum += mine[j].sum * expf(mine[j].most - most);
  return {most, block_sum(sum)};
}
// A block for each row.
extern "C" __global__ void loss_forward(Loss l) {
  const i64 row = blockIdx.x;
  const real* x = l.x + row * l.classes;
  const Exponentials all = row_exponentials(x, l.classes);
  if (threadIdx.x == 0) l.losses[row] = logf(all.sum) + all.most - x[label_of(l, row)];
}
extern "C" __global__ void loss_backward(Loss l) {
  const i64 row = blockIdx.x, label = label_of(l, row);
  const real* x = l.x + row * l.classes;
  const Exponentials all = row_exponentials(x, l.classes);
  const float scale = l.dy[0] * l.share, share = scale / all.sum;
#pragma unroll 4
  for (i64 i = threadIdx.x; i < l.classes; i += blockDim.x)
    l.to[row * l.classes + i] = share * expf(x[i] - all.most) - (i == label ? scale : 0.0f);
}

// Of a block of words: three numbers, the logarithm of the sum of exponentials in two, and the label's logit.
extern "C" __global__ void loss_statistics_forward(Loss l) {
  const i64 block = blockIdx.x, at = block % l.blocks * l.width, label = label_of(l, block / l.blocks) - at;
  const real* x = l.x + block * l.width;
  const Exponentials all = row_exponentials(x, l.width);
  if (threadIdx.x != 0) return;
  real* numbers = l.to + 3 * block;
  const float whole = logf(all.sum) + all.most;
  numbers[0] = whole;
  numbers[1] = whole - (float)numbers[0];
  numbers[2] = label >= 0 && label < l.width ? (float)x[label] : 0.0f;
}
extern "C" __global__ void loss_statistics_backward(Loss l) {
  const i64 block = blockIdx.x, at = block % l.blocks * l.width, label = label_of(l, block / l.blocks) - at;
  const real* x = l.x + block * l.width;
  const Exponentials all = row_exponentials(x, l.width);
  const float share = l.dy[3 * block] / all.sum, of_label = l.dy[3 * block + 2];
#pragma unroll 4
  for (i64 i = threadIdx.x; i < l.width; i += blockDim.x)
    l.to[block * l.width + i] = share * expf(x[i] - all.most) + (i == label ? of_label : 0.0f);
}

__device__ inline float of_block(const real* numbers, i64 b) {
  return (float)numbers[3 * b] + (float)numbers[3 * b + 1];
}
__device__ inline float log_of_blocks(const real* numbers, i64 blocks) {
  float most = -3.4e38f, sum = 0;
  for (i64 b = threadIdx.x; b < blocks; b += blockDim.x) most = fmaxf(most, of_block(numbers, b));
  most = block_most(most);
  for (i64 b = threadIdx.x; b < blocks; b += blockDim.x) sum += expf(of_block(numbers, b) - most);
  return logf(block_sum(sum)) + most;
}
extern "C" __global__ void split_loss_forward(Loss l) {
  const real* numbers = l.x + blockIdx.x * 3 * l.blocks;
  const float whole = log_of_blocks(numbers, l.blocks);
  float label = 0;
  for (i64 b = threadIdx.x; b < l.blocks; b += blockDim.x) label += (float)numbers[3 * b + 2];
  label = block_sum(label);
  if (threadIdx.x == 0) l.losses[blockIdx.x] = whole - label;
}
extern "C" __global__ void split_loss_backward(Loss l) {
  const real* numbers = l.x + blockIdx.x * 3 * l.blocks;
  const float whole = log_of_blocks(numbers, l.blocks), scale = l.dy[0] * l.share;
  real* to = l.to + blockIdx.x * 3 * l.blocks;
  for (i64 b = threadIdx.x; b < l.blocks; b += blockDim.x) {
    to[3 * b] = scale * expf(of_block(numbers, b) - whole);
    to[3 * b + 1] = (float)to[3 * b];
    to[3 * b + 2] = -scale;
  }
}
)";

constexpr const char* kWindows = R"(
// First and last element of window o in each dimension; how many there are.
__device__ inline i64 window(const Pool& p, i64 o, i64* first, i64* last) {
  i64 count = 1;
  for (int d = (int)p.rank - 1; d >= 0; --d) {
    const i64 at = o % p.y[d];
    o /= p.y[d];
    first[d] = at * p.x[d] / p.y[d];
    last[d] = ((at + 1) * p.x[d] + p.y[d] - 1) / p.y[d];
    count *= last[d] - first[d];
  }
  for (int d = (int)p.rank; d < 3; ++d) first[d] = 0, last[d] = 1;
  return count;
}
__device__ inline i64 volume(const i64* size, i64 rank) {
  i64 count = 1;
  for (int d = 0; d < rank; ++d) count *= size[d];
  return count;
}
__device__ inline i64 place_in(const Pool& p, i64 a, i64 b, i64 c) {
  i64 at = a;
  if (p.rank > 1) at = at * p.x[1] + b;
  if (p.rank > 2) at = at * p.x[2] + c;
  return at;
}
extern "C" __global__ void pool_forward(Pool p) {
  const i64 outs = volume(p.y, p.rank), ins = volume(p.x, p.rank);
  for (i64 i = thread(); i < p.planes * outs; i += threads()) {
    i64 first[3], last[3];
    const i64 count = window(p, i % outs, first, last);
    const real* x = p.from + i / outs * ins;
    float most = -3.4e38f, sum = 0;
    for (i64 a = first[0]; a < last[0]; ++a)
      for (i64 b = first[1]; b < last[1]; ++b)
        for (i64 c = first[2]; c < last[2]; ++c) {
          const float v = x[place_in(p, a, b, c)];
          most = fmaxf(most, v);
          sum += v;
        }
    p.to[i] = p.maximum ? most : sum / (float)count;
  }
}
// Into what is cleared; windows may overlap.
extern "C" __global__ void pool_backward(Pool p) {
  const i64 outs = volume(p.y, p.rank), ins = volume(p.x, p.rank);
  for (i64 i = thread(); i < p.planes * outs; i += threads()) {
    i64 first[3], last[3], best = -1;
    const i64 count = window(p, i % outs, first, last), base = i / outs * ins;
    for (i64 a = first[0]; a < last[0]; ++a)
      for (i64 b = first[1]; b < last[1]; ++b)
        for (i64 c = first[2]; c < last[2]; ++c) {
          const i64 at = base + place_in(p, a, b, c);
          if (!p.maximum) atomicAdd(p.sums + at, p.dy[i] / (float)count);
          else if (best < 0 || p.from[at] > p.from[best]) best = at;
        }
    if (p.maximum) atomicAdd(p.sums + best, (float)p.dy[i]);
  }
}

// Positions of an index of up to three dimensions.
__device__ inline void split(i64 index, const i64* size, i64 rank, i64* at) {
  for (int d = (int)rank - 1; d >= 0; --d) {
    at[d] = index % size[d];
    index /= size[d];
  }
}
// Offset in the large side of a position of the small one and of the kernel; -1: outside.
__device__ inline i64 large_at(const Convolution& c, const i64* small, const i64* tap) {
  i64 at = 0;
  for (int d = 0; d < c.rank; ++d) {
    const i64 i = small[d] * c.stride[d] + tap[d] - c.pad[d];
    if (i < 0 || i >= c.large[d]) return -1;
    at = at * c.large[d] + i;
  }
  return at;
}
// Offset in the small side of what the kernel's position leads from, for a position of the large one; -1: nothing.
__device__ inline i64 small_at(const Convolution& c, const i64* large, const i64* tap) {
  i64 at = 0;
  for (int d = 0; d < c.rank; ++d) {
    const i64 i = large[d] + c.pad[d] - tap[d];
    if (i < 0 || i % c.stride[d] != 0 || i / c.stride[d] >= c.small[d]) return -1;
    at = at * c.small[d] + i / c.stride[d];
  }
  return at;
}
__device__ inline i64 weight_at(const Convolution& c, i64 group, i64 o, i64 i, i64 taps) {
  return (c.transposed ? (group * c.in + i) * c.out + o : (group * c.out + o) * c.in + i) * taps;
}
// `forward`: y of x, else x of y. Sums over the other side's channels and the kernel.
__device__ inline void convolve(const Convolution& c, bool forward) {
  const i64 taps = volume(c.kernel, c.rank), smalls = volume(c.small, c.rank), larges = volume(c.large, c.rank);
  const bool to_small = forward != (c.transposed != 0);
  const i64 places = to_small ? smalls : larges, others = to_small ? larges : smalls;
  const i64 channels = forward ? c.out : c.in, inner = forward ? c.in : c.out;
  const real* from = forward ? c.x : c.y;
  for (i64 t = thread(); t < c.batch * c.groups * channels * places; t += threads()) {
    i64 at[3], tap[3];
    split(t % places, to_small ? c.small : c.large, c.rank, at);
    const i64 channel = t / places % channels, block = t / places / channels, group = block % c.groups;
    float sum = 0;
    for (i64 k = 0; k < taps; ++k) {
      split(k, c.kernel, c.rank, tap);
      const i64 o = to_small ? large_at(c, at, tap) : small_at(c, at, tap);
      if (o < 0) continue;
      for (i64 j = 0; j < inner; ++j)
        sum += from[(block * inner + j) * others + o] *
               c.w[weight_at(c, group, forward ? channel : j, forward ? j : channel, taps) + k];
    }
    c.to[t] = sum;
  }
}
extern "C" __global__ void convolution_forward(Convolution c) { convolve(c, true); }
extern "C" __global__ void convolution_data(Convolution c) { convolve(c, false); }
// A block for each element of the weight.
extern "C" __global__ void convolution_filter(Convolution c) {
  const i64 taps = volume(c.kernel, c.rank), smalls = volume(c.small, c.rank), larges = volume(c.large, c.rank);
  const i64 t = blockIdx.x, k = t % taps, inner = t / taps % (c.transposed ? c.out : c.in),
            outer = t / taps / (c.transposed ? c.out : c.in) % (c.transposed ? c.in : c.out),
            group = t / taps / c.in / c.out, o = c.transposed ? inner : outer, i = c.transposed ? outer : inner;
  const i64 xs = c.transposed ? smalls : larges, ys = c.transposed ? larges : smalls;
  i64 at[3], tap[3];
  split(k, c.kernel, c.rank, tap);
  float sum = 0;
  for (i64 j = threadIdx.x; j < c.batch * smalls; j += blockDim.x) {
    split(j % smalls, c.small, c.rank, at);
    const i64 large = large_at(c, at, tap);
    if (large < 0) continue;
    const i64 block = j / smalls * c.groups + group, small = j % smalls;
    sum += c.x[(block * c.in + i) * xs + (c.transposed ? small : large)] *
           c.y[(block * c.out + o) * ys + (c.transposed ? large : small)];
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) c.to[t] = sum;
}
)";

constexpr const char* kLookups = R"(
__device__ inline i64 row_of(const Lookup& l, i64 i) { return (i64)fabsf(l.indices[i]) % l.all - l.first; }
extern "C" __global__ void embedding_forward(Lookup l) {
  for (i64 t = thread(); t < l.count * l.channels; t += threads()) {
    const i64 row = row_of(l, t / l.channels);
    l.to[t] = row < 0 || row >= l.rows ? 0.0f : (float)l.from[row * l.channels + t % l.channels];
  }
}
// Into what is cleared.
extern "C" __global__ void embedding_backward(Lookup l) {
  for (i64 t = thread(); t < l.count * l.channels; t += threads()) {
    const i64 row = row_of(l, t / l.channels);
    if (row >= 0 && row < l.rows) atomicAdd(l.sums + row * l.channels + t % l.channels, (float)l.from[t]);
  }
}

// Which token each expert's slot gets: those of the largest weights, ties in their order.
extern "C" __global__ void choose_tokens(Experts e) {
  for (i64 t = thread(); t < e.samples * e.experts * e.tokens; t += threads()) {
    const i64 token = t % e.tokens, expert = t / e.tokens % e.experts, n = t / e.tokens / e.experts;
    const real* w = e.routing + n * e.tokens * e.experts + expert;
    const float mine = w[token * e.experts];
    i64 rank = 0;
    for (i64 o = 0; o < e.tokens; ++o) {
      const float other = w[o * e.experts];
      rank += other > mine || (other == mine && o < token) ? 1 : 0;
    }
    for (i64 s = rank; s < e.slots_each; s += e.tokens) e.chosen[(n * e.experts + expert) * e.slots_each + s] = (int)token;
  }
}
extern "C" __global__ void dispatch(Experts e) {
  for (i64 t = thread(); t < e.samples * e.experts * e.slots_each * e.channels; t += threads()) {
    const i64 c = t % e.channels, slot = t / e.channels, expert = slot / e.slots_each % e.experts,
              n = slot / e.slots_each / e.experts, token = n * e.tokens + e.chosen[slot];
    if (!e.dy) {
      e.to[t] = e.x[token * e.channels + c] + e.routing[token * e.experts + expert];
      continue;
    }
    if (e.sums) atomicAdd(e.sums + token * e.channels + c, (float)e.dy[t]);
    if (e.routing_sums) atomicAdd(e.routing_sums + token * e.experts + expert, (float)e.dy[t]);
  }
}
// Forward into what is cleared; backward likewise, where the token is not here.
extern "C" __global__ void combine(Experts e) {
  for (i64 t = thread(); t < e.samples * e.experts * e.slots_each * e.channels; t += threads()) {
    const i64 c = t % e.channels, slot = t / e.channels % e.slots_each, expert = t / e.channels / e.slots_each % e.experts,
              n = t / e.channels / e.slots_each / e.experts,
              token = ((e.first_expert + expert) * e.slots_each + slot) % e.all_tokens - e.first_token;
    if (token < 0 || token >= e.tokens) continue;
    const i64 o = (n * e.tokens + token) * e.channels + c;
    if (e.dy) e.to[t] = e.dy[o] * (1.0f + 0.2f * e.x[t]);
    else atomicAdd(e.sums + o, e.x[t] + 0.1f * e.x[t] * e.x[t]);
  }
}

// y[walked, u] = sum over operands, over what is not walked and over loops that y does not walk, of
// x (1 + x / 4) cos(u + 3 k): both ways into what is cleared.
__device__ inline float pattern(const Unknown& u, i64 w) { return cosf((float)(w % 16 + 3 * u.operand)); }
extern "C" __global__ void unknown_forward(Unknown u) {
  for (i64 t = thread(); t < u.walk.count; t += threads()) {
    i64 o[2], in;
    offsets(u.walk, t, o);
    float total = 0;
    for (i64 r = 0; r < u.reads.count; ++r) {
      offsets(u.reads, r, &in);
      const float x = u.x[o[0] + in];
      total += x * (1.0f + 0.25f * x) * u.share;
    }
    for (i64 w = 0; w < u.writes.count; ++w) {
      offsets(u.writes, w, &in);
      atomicAdd(u.sums + o[1] + in, total * pattern(u, w));
    }
  }
}
extern "C" __global__ void unknown_backward(Unknown u) {
  for (i64 t = thread(); t < u.walk.count; t += threads()) {
    i64 o[2], in;
    offsets(u.walk, t, o);
    float dy = 0;
    for (i64 w = 0; w < u.writes.count; ++w) {
      offsets(u.writes, w, &in);
      dy += u.dy[o[1] + in] * pattern(u, w);
    }
    for (i64 r = 0; r < u.reads.count; ++r) {
      offsets(u.reads, r, &in);
      atomicAdd(u.sums + o[0] + in, dy * u.share * (1.0f + 0.5f * u.x[o[0] + in]));
    }
  }
}
)";

constexpr const char* kCells = R"(
__device__ inline float logistic_of(float v) { return 1.0f / (1.0f + expf(-v)); }
extern "C" __global__ void cell_forward(Cell c) {
  for (i64 t = thread(); t < c.samples * c.units; t += threads()) {
    const i64 n = t / c.units, u = t % c.units, gates = c.gates;
    const real* in = c.from_input + n * c.row_stride + u * gates;
    const real* state = c.from_state + t * gates;
    float z[4], s[4];
    for (int g = 0; g < gates; ++g) {
      z[g] = in[g];
      s[g] = state[g];
      if (c.bias) z[g] += c.bias[u * gates + g] + (c.all_bias ? (float)c.bias[c.all_bias + u * gates + g] : 0.0f);
    }
    float mine = 0;
    if (gates == 4) {
      for (int g = 0; g < 4; ++g) z[g] = g == 2 ? tanhf(z[g] + s[g]) : logistic_of(z[g] + s[g]);
      const float cell = z[1] * c.cell[t] + z[0] * z[2];
      c.cell[t] = cell;
      mine = z[3] * tanhf(cell);
    } else if (gates == 3) {
      z[0] = logistic_of(z[0] + s[0]);
      z[1] = logistic_of(z[1] + s[1]);
      z[2] = tanhf(z[2] + z[1] * s[2]);
      mine = (1.0f - z[0]) * z[2] + z[0] * c.before[n * c.hidden + c.first_unit + u];
    } else {
      z[0] = mine = tanhf(z[0] + s[0]);
    }
    c.mine[t] = mine;
    c.y[n * c.y_stride + u] = mine;
    for (int g = 0; g < gates; ++g) c.gate[(n * c.y_stride + u) * gates + g] = z[g];
  }
}
// The state after a step again, from what is kept.
extern "C" __global__ void cell_recall(Cell c) {
  for (i64 t = thread(); t < c.samples * c.units; t += threads()) {
    const i64 n = t / c.units, u = t % c.units;
    c.mine[t] = c.y[n * c.y_stride + u];
    const real* g = c.gate + (n * c.y_stride + u) * c.gates;
    if (c.gates == 4) c.cell[t] = g[1] * c.old[t] + g[0] * g[2];
  }
}
// Gradients at the gates' arguments.
extern "C" __global__ void cell_backward(Cell c) {
  for (i64 t = thread(); t < c.samples * c.units; t += threads()) {
    const i64 n = t / c.units, u = t % c.units, gates = c.gates, at = n * c.hidden + c.first_unit + u;
    const real* g = c.gate + (n * c.y_stride + u) * gates;
    const float dh = c.dy[n * c.y_stride + u] + c.from_next[t];
    float dz[4] = {0, 0, 0, 0};
    if (gates == 4) {
      const float squashed = tanhf(c.cell[t]), dc = c.carried[t] + dh * g[3] * (1.0f - squashed * squashed);
      c.carried[t] = dc * g[1];
      dz[0] = dc * g[2] * g[0] * (1.0f - g[0]);
      dz[1] = dc * c.old[t] * g[1] * (1.0f - g[1]);
      dz[2] = dc * g[0] * (1.0f - g[2] * g[2]);
      dz[3] = dh * squashed * g[3] * (1.0f - g[3]);
    } else if (gates == 3) {
      const float before = c.before[at], dn = dh * (1.0f - g[0]) * (1.0f - g[2] * g[2]);
      c.into_before[at] = dh * g[0];
      dz[0] = dh * (before - g[2]) * g[0] * (1.0f - g[0]);
      dz[1] = dn * c.from_state[t * 3 + 2] * g[1] * (1.0f - g[1]);
      dz[2] = dn;
    } else {
      dz[0] = dh * (1.0f - g[0] * g[0]);
    }
    for (int i = 0; i < gates; ++i) {
      c.dz[n * c.row_stride + u * gates + i] = dz[i];
      c.dz_state[t * gates + i] = gates == 3 && i == 2 ? dz[i] * g[1] : dz[i];
    }
  }
}
)";

}  // namespace

std::string special_kernels() { return std::string(kLosses) + kWindows + kLookups + kCells; }

}  // namespace turnpoint::step::in_cuda
