// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gpu_probe/cpu/clones.h"

namespace turnpoint::probe {

namespace {

constexpr std::int64_t kRows = 6;                                    // of the block kept in registers
constexpr std::int64_t kBlockM = 96, kBlockN = 1024, kBlockK = 256;  // of the panels kept in L2 and L3

/// Numbers side by side, wherever they lie; a block is two of them wide.
template <class Real>
struct LaneOf;
template <>
struct LaneOf<float> {
  using Type = float __attribute__((vector_size(64), aligned(4), may_alias));
};
template <>
struct LaneOf<double> {
  using Type = double __attribute__((vector_size(32), aligned(8), may_alias));
};
template <class Real>
inline constexpr std::int64_t kLane = sizeof(typename LaneOf<Real>::Type) / sizeof(Real);
template <class Real>
inline constexpr std::int64_t kColumns = 2 * kLane<Real>;

/// c[6][two lanes] (+)= a[k][6] b[k][two lanes], both packed.
template <class Real>
[[gnu::always_inline]] inline void block_of(std::int64_t k, const Real* a, const Real* b, Real* c, std::int64_t stride,
                                            bool add) {
  using Lane = typename LaneOf<Real>::Type;
  Lane sum[kRows][2];
  for (auto& row : sum) row[0] = row[1] = Lane{};
  for (std::int64_t i = 0; i < k; ++i, a += kRows, b += kColumns<Real>) {
    const Lane b0 = *reinterpret_cast<const Lane*>(b), b1 = *reinterpret_cast<const Lane*>(b + kLane<Real>);
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < kRows; ++r) {
      sum[r][0] += a[r] * b0;
      sum[r][1] += a[r] * b1;
    }
  }
#pragma GCC unroll 6
  for (std::int64_t r = 0; r < kRows; ++r) {
    Lane* row = reinterpret_cast<Lane*>(c + r * stride);
    row[0] = add ? row[0] + sum[r][0] : sum[r][0];
    row[1] = add ? row[1] + sum[r][1] : sum[r][1];
  }
}

TURNPOINT_CLONES void block(std::int64_t k, const float* a, const float* b, float* c, std::int64_t stride, bool add) {
  block_of(k, a, b, c, stride, add);
}
// In double the twelve sums of a block are twelve registers of AVX2. Vectors are taken apart before a function is
// cloned (TURNPOINT_CLONES), so that this one is chosen by hand.
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void block_avx2(std::int64_t k, const double* a, const double* b, double* c,
                                                    std::int64_t stride, bool add) {
  using Lane = LaneOf<double>::Type;
  Lane sum[kRows][2];
  for (auto& row : sum) row[0] = row[1] = Lane{};
  for (std::int64_t i = 0; i < k; ++i, a += kRows, b += kColumns<double>) {
    const Lane b0 = *reinterpret_cast<const Lane*>(b), b1 = *reinterpret_cast<const Lane*>(b + kLane<double>);
#pragma GCC unroll 6
    for (std::int64_t r = 0; r < kRows; ++r) {
      sum[r][0] += a[r] * b0;
      sum[r][1] += a[r] * b1;
    }
  }
#pragma GCC unroll 6
  for (std::int64_t r = 0; r < kRows; ++r) {
    Lane* row = reinterpret_cast<Lane*>(c + r * stride);
    row[0] = add ? row[0] + sum[r][0] : sum[r][0];
    row[1] = add ? row[1] + sum[r][1] : sum[r][1];
  }
}
#endif

void block(std::int64_t k, const double* a, const double* b, double* c, std::int64_t stride, bool add) {
#ifdef __x86_64__
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return block_avx2(k, a, b, c, stride, add);
#endif
  block_of(k, a, b, c, stride, add);
}

template <class Real>
struct View {
  const Real* data;
  std::int64_t row_stride, column_stride;
  Real at(std::int64_t r, std::int64_t c) const { return data[r * row_stride + c * column_stride]; }
};

template <class Real>
void pack_a(const View<Real>& a, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1, Real* to) {
  for (std::int64_t m = m0; m < m1; m += kRows)
    for (std::int64_t k = k0; k < k1; ++k)
      for (std::int64_t r = 0; r < kRows; ++r) *to++ = m + r < m1 ? a.at(m + r, k) : Real(0);
}

template <class Real>
void pack_b(const View<Real>& b, std::int64_t k0, std::int64_t k1, std::int64_t n0, std::int64_t n1, Real* to) {
  constexpr std::int64_t kWide = kColumns<Real>;
  for (std::int64_t n = n0; n < n1; n += kWide) {
    const std::int64_t columns = std::min(kWide, n1 - n);
    for (std::int64_t k = k0; k < k1; ++k, to += kWide) {
      if (b.column_stride == 1 && columns == kWide) {
        std::memcpy(to, b.data + k * b.row_stride + n, kWide * sizeof(Real));
        continue;
      }
      for (std::int64_t c = 0; c < kWide; ++c) to[c] = c < columns ? b.at(k, n + c) : Real(0);
    }
  }
}

std::int64_t rounded(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

/// C (+)= A B of these views; rows of C are `lead` apart.
template <class Real>
void multiply(const View<Real>& va, const View<Real>& vb, std::int64_t all_m, std::int64_t all_n, std::int64_t all_k,
              bool onto, Real* c, std::int64_t lead) {
  constexpr std::int64_t kWide = kColumns<Real>;
  thread_local std::vector<Real> packed_a, packed_b;
  packed_a.resize(static_cast<std::size_t>(rounded(kBlockM, kRows) * kBlockK));
  packed_b.resize(static_cast<std::size_t>(rounded(std::min(kBlockN, all_n), kWide) * kBlockK));
  for (std::int64_t n0 = 0; n0 < all_n; n0 += kBlockN) {
    const std::int64_t n1 = std::min(all_n, n0 + kBlockN);
    for (std::int64_t k0 = 0; k0 < all_k; k0 += kBlockK) {
      const std::int64_t k1 = std::min(all_k, k0 + kBlockK), depth = k1 - k0;
      const bool add = k0 > 0 || onto;
      pack_b(vb, k0, k1, n0, n1, packed_b.data());
      for (std::int64_t m0 = 0; m0 < all_m; m0 += kBlockM) {
        const std::int64_t m1 = std::min(all_m, m0 + kBlockM);
        pack_a(va, m0, m1, k0, k1, packed_a.data());
        for (std::int64_t n = n0; n < n1; n += kWide)
          for (std::int64_t m = m0; m < m1; m += kRows) {
            const Real* pa = packed_a.data() + (m - m0) * depth;
            const Real* pb = packed_b.data() + (n - n0) * depth;
            const std::int64_t rows = std::min(kRows, m1 - m), columns = std::min(kWide, n1 - n);
            if (rows == kRows && columns == kWide) {
              block(depth, pa, pb, c + m * lead + n, lead, add);
              continue;
            }
            alignas(64) Real edge[kRows * kWide];
            block(depth, pa, pb, edge, kWide, false);
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t i = 0; i < columns; ++i) {
                Real& to = c[(m + r) * lead + n + i];
                to = edge[r * kWide + i] + (add ? to : Real(0));
              }
          }
      }
    }
  }
}

}  // namespace

void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c) {
  const View<float> va{a, shape.transpose_a ? 1 : shape.lead_a(), shape.transpose_a ? shape.lead_a() : 1};
  const View<float> vb{b, shape.transpose_b ? 1 : shape.lead_b(), shape.transpose_b ? shape.lead_b() : 1};
  multiply(va, vb, shape.m, shape.n, shape.k, beta != 0, c, shape.lead_c());
}

void add_product(const StridedProduct& p, const double* a, const double* b, double* c) {
  multiply(View<double>{a, p.a_row, p.a_column}, View<double>{b, p.b_row, p.b_column}, p.m, p.n, p.k, true, c, p.c_row);
}

}  // namespace turnpoint::probe
