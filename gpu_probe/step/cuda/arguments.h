// SPDX-License-Identifier: Apache-2.0
// What the kernels of a step are called with: one text, for the compiler of this program and for that of the device.
#pragma once

#include <cstdint>

namespace turnpoint::step::in_cuda {

using i64 = std::int64_t;
using u64 = std::uint64_t;

#define TURNPOINT_STEP_ARGUMENTS(...) \
  __VA_ARGS__                         \
  inline constexpr char kArguments[] = #__VA_ARGS__;

// clang-format off
TURNPOINT_STEP_ARGUMENTS(
// Loops, innermost first, and the strides of some arrays along them.
template <int kArrays> struct Walk {
  i64 count;
  i64 loops;
  i64 size[6];
  i64 stride[kArrays][6];
};

struct Move {
  Walk<2> walk;  // to, from
  const float* from;
  float* to;
  i64 add;
};

struct Hold {
  i64 cycles;
};

struct Box {
  i64 rank;
  i64 extent[6];
  i64 offset[6];
  i64 whole[6];
};

// Operands in 1 ... of the walk, the result in 0.
struct Elementwise {
  Walk<7> walk;
  const float* x[6];
  const float* y;
  const float* mask;
  const float* dy;
  float* to[6];  // forward: result and mask; backward: gradients
  i64 kind;
  i64 operands;
  i64 saved;     // bits
  i64 wanted;    // operand, of a sum
  i64 floating;
  i64 masked;
  u64 stream;    // of the mask's numbers
  u64 threshold; // those below are dropped
  float kept;    // what the others are multiplied by
  float reserved;
  Box place;
};

// One result for every step of `outer`: the sum over `inner`. Array 0 is the result.
template <int kArrays> struct Reduce {
  Walk<kArrays> outer;
  Walk<kArrays> inner;
  float* to;
  float factor;
  int add;  // of several blocks, to what is cleared
};
struct Sums {
  Reduce<5> of;
  const float* a;
  const float* b;
  const float* m;  // of each set: mean,
  const float* d;  // 1 / deviation
  const float* s;
  i64 what;
};
struct ElementwiseSums {
  Reduce<8> of;
  Elementwise e;
};

// A block for each row of consecutive elements.
struct RowsOf {
  i64 size;
  const float* x;
  const float* scale;
  const float* bias;
  const float* dy;
  float* m;
  float* d;
  float* to;
  float epsilon;
  int centred;
};

// y = (x - mean) / deviation * scale + bias, or the gradient of x.
struct Normalise {
  Walk<4> walk;  // x, set, scale, bias
  const float* x;
  const float* m;
  const float* d;
  const float* scale;
  const float* bias;
  const float* dy;
  const float* sum;
  const float* sum_x;
  float* to;
  float share;
  int centred;
};

struct Soft {
  Walk<1> rows;
  i64 size;
  i64 stride;
  i64 logarithm;
  const float* y;
  const float* dy;
  float* to;
};

struct Loss {
  i64 classes;
  const float* x;
  const float* labels;
  const float* dy;
  float* to;
  float share;
  float unused;
};

struct Pool {
  i64 planes;
  i64 rank;
  i64 x[3];
  i64 y[3];
  i64 maximum;
  const float* from;
  const float* dy;
  float* to;
};

struct Convolution {
  i64 batch;
  i64 groups;
  i64 out;
  i64 in;
  i64 rank;
  i64 small[3];
  i64 large[3];
  i64 kernel[3];
  i64 stride[3];
  i64 pad[3];
  i64 transposed;
  const float* x;
  const float* w;
  const float* y;
  float* to;
};

struct Lookup {
  i64 count;
  i64 channels;
  i64 first;
  i64 rows;
  i64 all;
  const float* indices;
  const float* from;
  float* to;
};

struct Experts {
  i64 samples;
  i64 tokens;
  i64 experts;
  i64 slots_each;
  i64 channels;
  i64 first_expert;
  i64 first_token;
  i64 all_tokens;
  const float* x;
  const float* routing;
  const float* dy;
  int* chosen;
  float* to;
  float* to_routing;
};

struct Unknown {
  Walk<2> walk;    // x, y
  Walk<1> reads;   // of x, what no loop walks
  Walk<1> writes;  // of y
  i64 operand;
  float share;
  float unused;
  const float* x;
  const float* dy;
  float* to;
};

struct Cell {
  i64 samples;
  i64 units;
  i64 hidden;
  i64 gates;
  i64 first_unit;
  i64 row_stride;   // of a sample's products from the input
  i64 y_stride;     // of a sample in the output; gates times that in the gates
  i64 all_bias;
  const float* from_input;
  const float* from_state;
  const float* bias;
  const float* before;
  float* mine;
  float* cell;
  float* y;
  float* gate;
  // backward
  const float* dy;
  const float* from_next;
  const float* old;
  float* carried;
  float* dz;
  float* dz_state;
  float* into_before;
};

struct Rule {
  i64 count;
  i64 rule;
  const float* g;
  float* w;
  float* m;
  float* v;
  float rate;
  float unused;
};

struct Weighted {
  i64 count;
  const float* a;
  const float* b;
  double* to;
};
)
// clang-format on
#undef TURNPOINT_STEP_ARGUMENTS

}  // namespace turnpoint::step::in_cuda
