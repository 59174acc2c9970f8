// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/networks/product.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/frontier/dispatch.h"

namespace turnpoint::trinity::networks {

namespace {

constexpr std::size_t kRows = 4, kColumns = 32;  // of the block whose sums stay in registers
constexpr std::size_t kPackFrom = 16;            // rows from which copying a panel of B pays

template <std::size_t rows, class Real>
[[gnu::always_inline]] inline void block_rows(std::size_t k, const Real* a, std::size_t lead_a, const Real* b,
                                              std::size_t lead_b, Real* c, std::size_t lead_c, bool add) {
  Real sum[rows][kColumns] = {};
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t r = 0; r < rows; ++r) {
      const Real factor = a[r * lead_a + i];
      for (std::size_t j = 0; j < kColumns; ++j) sum[r][j] += factor * b[i * lead_b + j];
    }
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t j = 0; j < kColumns; ++j) c[r * lead_c + j] = add ? c[r * lead_c + j] + sum[r][j] : sum[r][j];
}

template <class Real>
[[gnu::always_inline]] inline void any_block(std::size_t rows, std::size_t k, const Real* a, std::size_t lead_a,
                                             const Real* b, std::size_t lead_b, Real* c, std::size_t lead_c, bool add) {
  if (rows == 4) return block_rows<4>(k, a, lead_a, b, lead_b, c, lead_c, add);
  if (rows == 3) return block_rows<3>(k, a, lead_a, b, lead_b, c, lead_c, add);
  if (rows == 2) return block_rows<2>(k, a, lead_a, b, lead_b, c, lead_c, add);
  block_rows<1>(k, a, lead_a, b, lead_b, c, lead_c, add);
}

TURNPOINT_VECTOR_CLONES void block(std::size_t rows, std::size_t k, const float* a, std::size_t lead_a, const float* b,
                                   std::size_t lead_b, float* c, std::size_t lead_c, bool add) {
  any_block(rows, k, a, lead_a, b, lead_b, c, lead_c, add);
}
void block(std::size_t rows, std::size_t k, const double* a, std::size_t lead_a, const double* b, std::size_t lead_b,
           double* c, std::size_t lead_c, bool add) {
  any_block(rows, k, a, lead_a, b, lead_b, c, lead_c, add);
}

/// Rows of `from` (rows x columns) become columns of `to`.
template <class Real>
void transpose(const Real* from, std::size_t rows, std::size_t columns, Real* to) {
  constexpr std::size_t kTile = 16;
  for (std::size_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::size_t c0 = 0; c0 < columns; c0 += kTile)
      for (std::size_t r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (std::size_t c = c0; c < std::min(columns, c0 + kTile); ++c) to[c * rows + r] = from[r * columns + c];
}

template <class Real>
void multiply_matrices(const Product& p, const Real* a, const Real* b, Real* c) {
  thread_local std::vector<Real> turned_a, turned_b, panel;
  if (p.transpose_a) {
    turned_a.resize(p.m * p.k);
    transpose(a, p.k, p.m, turned_a.data());
    a = turned_a.data();
  }
  if (p.transpose_b) {
    turned_b.resize(p.n * p.k);
    transpose(b, p.n, p.k, turned_b.data());
    b = turned_b.data();
  }
  Real edge[kRows * kColumns];
  for (std::size_t n0 = 0; n0 < p.n; n0 += kColumns) {
    const std::size_t columns = std::min(kColumns, p.n - n0);
    const Real* from = b + n0;
    std::size_t lead = p.n;
    if (columns < kColumns || p.m >= kPackFrom) {
      panel.assign(p.k * kColumns, Real(0));
      for (std::size_t i = 0; i < p.k; ++i)
        std::copy_n(b + i * p.n + n0, columns, panel.begin() + std::ptrdiff_t(i * kColumns));
      from = panel.data();
      lead = kColumns;
    }
    for (std::size_t m0 = 0; m0 < p.m; m0 += kRows) {
      const std::size_t rows = std::min(kRows, p.m - m0);
      Real* to = c + m0 * p.n + n0;
      if (columns == kColumns) {
        block(rows, p.k, a + m0 * p.k, p.k, from, lead, to, p.n, p.add);
        continue;
      }
      block(rows, p.k, a + m0 * p.k, p.k, from, lead, edge, kColumns, false);
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t j = 0; j < columns; ++j)
          to[r * p.n + j] = (p.add ? to[r * p.n + j] : Real(0)) + edge[r * kColumns + j];
    }
  }
}

/// e^x as 2^n e^r with |r| <= ln(2) / 2 and a polynomial for e^r; n from the last bits of a number so large that its
/// unit is one.
[[gnu::always_inline]] inline float exponential(float x) {
  constexpr float kUnitIsOne = 12582912.0f;
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float shifted = x * 1.44269504088896341f + kUnitIsOne;
  const float n = shifted - kUnitIsOne;
  const float r = (x - n * 0.693145751953125f) - n * 1.42860682030941723e-6f;
  float e = 1.0f / 5040;
  e = e * r + 1.0f / 720;
  e = e * r + 1.0f / 120;
  e = e * r + 1.0f / 24;
  e = e * r + 1.0f / 6;
  e = e * r + 0.5f;
  e = e * r + 1.0f;
  e = e * r + 1.0f;
  const std::int32_t exponent = std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kUnitIsOne);
  return e * std::bit_cast<float>((exponent + 127) << 23);
}

template <class Real>
Real dot_of(const Real* a, const Real* b, std::size_t n) {
  constexpr std::size_t kLanes = 16;
  Real lane[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (std::size_t j = 0; j < kLanes; ++j) lane[j] += a[i + j] * b[i + j];
  for (std::size_t j = 0; i + j < n; ++j) lane[j] += a[i + j] * b[i + j];
  Real sum = 0;
  for (const Real one : lane) sum += one;
  return sum;
}

}  // namespace

void multiply(const Product& product, const float* a, const float* b, float* c) { multiply_matrices(product, a, b, c); }
void multiply(const Product& product, const double* a, const double* b, double* c) {
  multiply_matrices(product, a, b, c);
}

TURNPOINT_VECTOR_CLONES void exponentials(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = exponential(x[i]);
}
void exponentials(double* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = std::exp(x[i]);
}

TURNPOINT_VECTOR_CLONES void hyperbolic_tangents(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = 1.0f - 2.0f / (exponential(2.0f * x[i]) + 1.0f);
}
void hyperbolic_tangents(double* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = std::tanh(x[i]);
}

TURNPOINT_VECTOR_CLONES void sigmoids(float* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = 1.0f / (exponential(-x[i]) + 1.0f);
}
void sigmoids(double* x, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) x[i] = 1.0 / (std::exp(-x[i]) + 1.0);
}

float dot(const float* a, const float* b, std::size_t n) { return dot_of(a, b, n); }
double dot(const double* a, const double* b, std::size_t n) { return dot_of(a, b, n); }

}  // namespace turnpoint::trinity::networks
