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
  /// Elements from one stored row to the next; 0: no more than the row has.
  std::int64_t stored_a = 0, stored_b = 0, stored_c = 0;

  std::int64_t lead_a() const { return stored_a ? stored_a : transpose_a ? m : k; }
  std::int64_t lead_b() const { return stored_b ? stored_b : transpose_b ? k : n; }
  std::int64_t lead_c() const { return stored_c ? stored_c : n; }
};

/// beta 0 overwrites C, 1 adds to it.
void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c);

/// Elements from one row, or column, of a matrix to the next; columns of C lie beside each other.
struct StridedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_column = 0, b_row = 0, b_column = 0, c_row = 0;
};
/// C += A B in double, by the same blocks.
void add_product(const StridedProduct& product, const double* a, const double* b, double* c);

using GemmFunction = void (*)(const GemmShape&, const float* a, const float* b, float beta, float* c);

}  // namespace turnpoint::probe
