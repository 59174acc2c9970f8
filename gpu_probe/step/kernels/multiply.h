// SPDX-License-Identifier: Apache-2.0
// y += a x b over loops that each walk some of the three.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "gpu_probe/step/values/real.h"

namespace turnpoint::step::TURNPOINT_REAL {

/// Loops by size; strides of a, b and y, 0 where a loop does not walk it.
struct Multiplied {
  std::vector<std::int64_t> sizes;
  std::array<std::vector<std::int64_t>, 3> strides;
};

/// Number by number, in the order of the loops.
void multiply_add_plainly(const Multiplied& loops, const Real* a, const Real* b, Real* y);
/// The same sums. In double, of which the proof is made, by a library or by blocks in registers
/// (gpu_probe/cpu/double_products.h) where three of the loops are a product of matrices: in another order, so that a
/// result differs by roundings.
void multiply_add(const Multiplied& loops, const Real* a, const Real* b, Real* y);

}  // namespace turnpoint::step::TURNPOINT_REAL
