// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/gemm.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "gpu_probe/cpu/clones.h"

namespace turnpoint::probe {

namespace {

constexpr std::int64_t kRows = 6, kColumns = 32;                             // of the block kept in registers
constexpr std::int64_t kBlockM = 96, kBlockN = 1024, kBlockK = 256;          // of the panels kept in L2 and L3
using Lane = float __attribute__((vector_size(64), aligned(4), may_alias));  // 16 floats, wherever they lie

/// c[6][32] (+)= a[k][6] b[k][32], both packed.
TURNPOINT_CLONES void block(std::int64_t k, const float* a, const float* b, float* c, std::int64_t stride, bool add) {
  Lane sum[kRows][2];
  for (auto& row : sum) row[0] = row[1] = Lane{};
  for (std::int64_t i = 0; i < k; ++i, a += kRows, b += kColumns) {
    const Lane b0 = *reinterpret_cast<const Lane*>(b), b1 = *reinterpret_cast<const Lane*>(b + 16);
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

struct View {
  const float* data;
  std::int64_t row_stride, column_stride;
  float at(std::int64_t r, std::int64_t c) const { return data[r * row_stride + c * column_stride]; }
};

void pack_a(const View& a, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1, float* to) {
  for (std::int64_t m = m0; m < m1; m += kRows)
    for (std::int64_t k = k0; k < k1; ++k)
      for (std::int64_t r = 0; r < kRows; ++r) *to++ = m + r < m1 ? a.at(m + r, k) : 0.0f;
}

void pack_b(const View& b, std::int64_t k0, std::int64_t k1, std::int64_t n0, std::int64_t n1, float* to) {
  for (std::int64_t n = n0; n < n1; n += kColumns) {
    const std::int64_t columns = std::min(kColumns, n1 - n);
    for (std::int64_t k = k0; k < k1; ++k, to += kColumns) {
      if (b.column_stride == 1 && columns == kColumns) {
        std::memcpy(to, b.data + k * b.row_stride + n, kColumns * sizeof(float));
        continue;
      }
      for (std::int64_t c = 0; c < kColumns; ++c) to[c] = c < columns ? b.at(k, n + c) : 0.0f;
    }
  }
}

std::int64_t rounded(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

void gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c) {
  const View va{a, shape.transpose_a ? 1 : shape.lead_a(), shape.transpose_a ? shape.lead_a() : 1};
  const View vb{b, shape.transpose_b ? 1 : shape.lead_b(), shape.transpose_b ? shape.lead_b() : 1};
  const std::int64_t lead = shape.lead_c();
  thread_local std::vector<float> packed_a, packed_b;
  packed_a.resize(static_cast<std::size_t>(rounded(kBlockM, kRows) * kBlockK));
  packed_b.resize(static_cast<std::size_t>(rounded(std::min(kBlockN, shape.n), kColumns) * kBlockK));
  for (std::int64_t n0 = 0; n0 < shape.n; n0 += kBlockN) {
    const std::int64_t n1 = std::min(shape.n, n0 + kBlockN);
    for (std::int64_t k0 = 0; k0 < shape.k; k0 += kBlockK) {
      const std::int64_t k1 = std::min(shape.k, k0 + kBlockK), depth = k1 - k0;
      const bool add = k0 > 0 || beta != 0;
      pack_b(vb, k0, k1, n0, n1, packed_b.data());
      for (std::int64_t m0 = 0; m0 < shape.m; m0 += kBlockM) {
        const std::int64_t m1 = std::min(shape.m, m0 + kBlockM);
        pack_a(va, m0, m1, k0, k1, packed_a.data());
        for (std::int64_t n = n0; n < n1; n += kColumns)
          for (std::int64_t m = m0; m < m1; m += kRows) {
            const float* pa = packed_a.data() + (m - m0) * depth;
            const float* pb = packed_b.data() + (n - n0) * depth;
            const std::int64_t rows = std::min(kRows, m1 - m), columns = std::min(kColumns, n1 - n);
            if (rows == kRows && columns == kColumns) {
              block(depth, pa, pb, c + m * lead + n, lead, add);
              continue;
            }
            alignas(64) float edge[kRows * kColumns];
            block(depth, pa, pb, edge, kColumns, false);
            for (std::int64_t r = 0; r < rows; ++r)
              for (std::int64_t i = 0; i < columns; ++i) {
                float& to = c[(m + r) * lead + n + i];
                to = edge[r * kColumns + i] + (add ? to : 0.0f);
              }
          }
      }
    }
  }
}

}  // namespace turnpoint::probe
