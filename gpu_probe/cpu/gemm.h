// SPDX-License-Identifier: Apache-2.0
// C = A B for row-major fp32 matrices on one core: blocked and packed, written for auto-vectorisation. The plain twin
// of the libraries in blas.h, and what runs where none of them is installed.
#pragma once

#include <cstdint>

namespace turnpoint::probe {

struct GemmShape {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false;  ///< A is stored k x m
  bool transpose_b = false;  ///< B is stored n x k
};

/// beta 0 overwrites C, 1 adds to it.
void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c);

using GemmFunction = void (*)(const GemmShape&, const float* a, const float* b, float beta, float* c);

}  // namespace turnpoint::probe
