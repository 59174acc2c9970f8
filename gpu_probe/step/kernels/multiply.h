// SPDX-License-Identifier: Apache-2.0
// y += a x b over loops that each walk some of the three.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace turnpoint::step {

/// Loops by size; strides of a, b and y, 0 where a loop does not walk it.
struct Multiplied {
  std::vector<std::int64_t> sizes;
  std::array<std::vector<std::int64_t>, 3> strides;
};

/// Number by number, in the order of the loops; in double and in float.
template <class Real>
void multiply_add_plainly(const Multiplied& loops, const Real* a, const Real* b, Real* y);
/// The same sums. In double, of which the proof is made, by a library or by blocks in registers
/// (gpu_probe/cpu/double_products.h) where three of the loops are a product of matrices: in another order, so that a
/// result differs by roundings.
void multiply_add(const Multiplied& loops, const double* a, const double* b, double* y);
/// In float plainly: its kernels have faster means of their own (kernels/fast).
inline void multiply_add(const Multiplied& loops, const float* a, const float* b, float* y) {
  multiply_add_plainly(loops, a, b, y);
}

}  // namespace turnpoint::step
