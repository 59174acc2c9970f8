// SPDX-License-Identifier: Apache-2.0
// What the kernels of a step are called with: one text, for the compiler of this program and for that of the device.
#pragma once

#include <cstdint>

namespace turnpoint::step::in_cuda {

using i64 = std::int64_t;
using u64 = std::uint64_t;
/// An element as the device keeps it: a float, or 2 bytes of it (bf16). Here it is but an address' type, so that none
/// of the two is taken for the other.
struct real;

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

// One of each two is null; the wide ones are floats whatever the device keeps.
struct Move {
  Walk<2> walk;  // to, from
  const real* from;
  const float* wide_from;
  real* to;
  float* wide_to;
  i64 add;
  i64 packs;  // a step of the walk is several elements
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
  const real* x[6];
  const real* y;
  const real* mask;
  const real* dy;
  real* to[6];  // forward: result and mask; backward: gradients
  i64 kind;
  i64 operands;
  i64 saved;     // bits
  i64 wanted;    // operand, of a sum
  i64 floating;
  i64 masked;
  i64 packs;     // a step of the walk is several elements
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
  real* to;
  float* wide;  // instead of `to`
  float factor;
  int add;  // of several blocks, to what is cleared
};
struct Sums {
  Reduce<5> of;
  const real* a;
  const real* b;
  const float* m;  // of each set: mean,
  const float* d;  // 1 / deviation
  const real* s;
  i64 what;
};
struct ElementwiseSums {
  Reduce<8> of;
  Elementwise e;
};

// A block for each row of consecutive elements.
struct RowsOf {
  i64 size;
  i64 held;  // in the registers of a block
  const real* x;
  const real* scale;
  const real* bias;
  const real* dy;
  float* m;
  float* d;
  real* to;
  float epsilon;
  int centred;
};

// y = (x - mean) / deviation * scale + bias, or the gradient of x.
struct Normalise {
  Walk<4> walk;  // x, set, scale, bias
  const real* x;
  const float* m;
  const float* d;
  const real* scale;
  const real* bias;
  const real* dy;
  const float* sum;
  const float* sum_x;
  real* to;
  float share;
  int centred;
};

struct Soft {
  Walk<1> rows;
  i64 size;
  i64 stride;
  i64 logarithm;
  i64 held;  // rows lie together, and a block keeps one
  const real* y;
  const real* dy;
  real* to;
};

struct Loss {
  i64 classes;
  i64 first_class;
  i64 all_classes;
  i64 blocks;
  i64 width;
  const real* x;
  const real* labels;
  const real* dy;
  float* losses;
  real* to;
  float share;
  float unused;
};

struct Pool {
  i64 planes;
  i64 rank;
  i64 x[3];
  i64 y[3];
  i64 maximum;
  const real* from;
  const real* dy;
  real* to;
  float* sums;  // backward
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
  const real* x;
  const real* w;
  const real* y;
  real* to;
};

struct Lookup {
  i64 count;
  i64 channels;
  i64 first;
  i64 rows;
  i64 all;
  const real* indices;
  const real* from;
  real* to;
  float* sums;  // backward
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
  const real* x;
  const real* routing;
  const real* dy;
  int* chosen;
  real* to;
  float* sums;  // of dispatch in backward, of combine in forward
  float* routing_sums;
};

struct Unknown {
  Walk<2> walk;    // x, y
  Walk<1> reads;   // of x, what no loop walks
  Walk<1> writes;  // of y
  i64 operand;
  float share;
  float unused;
  const real* x;
  const real* dy;
  float* sums;
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
  const real* from_input;
  const real* from_state;
  const real* bias;
  const real* before;
  real* mine;
  float* cell;
  real* y;
  real* gate;
  // backward
  const real* dy;
  const real* from_next;
  const float* old;
  float* carried;
  real* dz;
  real* dz_state;
  real* into_before;
};

struct Rule {
  i64 count;
  i64 rule;
  const real* g;
  real* w;
  float* master;  // of weights that are kept in less
  float* m;
  float* v;
  float rate;
  float unused;
};

struct Weighted {
  i64 count;
  const float* a;
  const real* b;
  double* to;
};
)
// clang-format on
#undef TURNPOINT_STEP_ARGUMENTS

}  // namespace turnpoint::step::in_cuda
