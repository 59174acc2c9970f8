// SPDX-License-Identifier: Apache-2.0
// Products of row-major matrices on one core, and the few functions of numbers that the networks are made of: plain
// loops that the compiler vectorises. Networks are small and run once per thread, so that no library is asked for.
//
// Everything here exists in float, in which networks learn, and in double, in which tests check derivatives. Sums run
// in one fixed order, whatever the number of threads; compilers may fuse a product with a sum, so that the last bits
// are those of one kind of processor.
#pragma once

#include <cstddef>

namespace turnpoint::trinity::networks {

struct Product {
  std::size_t m = 0, n = 0, k = 0;  ///< C is m x n, the sums have k terms
  bool transpose_a = false;         ///< A is stored k x m
  bool transpose_b = false;         ///< B is stored n x k
  bool add = false;                 ///< to what C holds, else C is overwritten
};

/// C (+)= A B. A, B and C do not overlap.
void multiply(const Product& product, const float* a, const float* b, float* c);
void multiply(const Product& product, const double* a, const double* b, double* c);

// In place, each within 3e-7 (float, relative to the larger of the value and 1) of the exact value.
void exponentials(float* x, std::size_t n);
void exponentials(double* x, std::size_t n);
void hyperbolic_tangents(float* x, std::size_t n);
void hyperbolic_tangents(double* x, std::size_t n);
void sigmoids(float* x, std::size_t n);
void sigmoids(double* x, std::size_t n);

/// Sum of a[i] b[i], in sixteen lanes.
float dot(const float* a, const float* b, std::size_t n);
double dot(const double* a, const double* b, std::size_t n);

}  // namespace turnpoint::trinity::networks
