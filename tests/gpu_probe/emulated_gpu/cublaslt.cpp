// SPDX-License-Identifier: Apache-2.0
// Matrix products of the emulated GPU: column-major, with leading dimensions, transposes and strided batches, in fp32
// or of bf16 with sums in fp32.
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "bf16.h"
#include "emulated_gpu.h"

namespace {

struct Attributes {
  std::map<int, std::int64_t> set;
  int type = 0;
  std::int64_t rows = 0, columns = 0, leading = 0;
  std::int64_t get(int which, std::int64_t otherwise) const {
    const auto found = set.find(which);
    return found == set.end() ? otherwise : found->second;
  }
  int put(int which, const void* value, std::size_t bytes) {
    std::int64_t number = 0;
    std::int32_t small = 0;
    if (bytes == 4) {
      std::memcpy(&small, value, 4);
      number = small;
    } else if (bytes == 8) {
      std::memcpy(&number, value, 8);
    } else {
      return 7;
    }
    set[which] = number;
    return 0;
  }
};

constexpr int kFloat = 0, kBf16 = 14, kTransposeA = 3, kTransposeB = 4, kBatch = 5, kStride = 6, kEpilogue = 7,
              kBiasPointer = 8, kAddBias = 4;
constexpr int kBad = 7, kUnsupported = 15;

struct Heuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};

/// 0: the operands fit together.
int check(const Attributes& d, const Attributes& a, const Attributes& b, const Attributes& c) {
  const bool ta = d.get(kTransposeA, 0) != 0, tb = d.get(kTransposeB, 0) != 0;
  const std::int64_t m = ta ? a.columns : a.rows, k = ta ? a.rows : a.columns, kb = tb ? b.columns : b.rows,
                     n = tb ? b.rows : b.columns;
  for (const auto* one : {&a, &b, &c})
    if (one->leading < one->rows || one->get(kBatch, 1) != c.get(kBatch, 1)) return kBad;
  if ((a.type != kFloat && a.type != kBf16) || b.type != a.type || c.type != a.type) return kUnsupported;
  return m == c.rows && n == c.columns && k == kb ? 0 : kBad;
}

template <class T>
void multiply(const Attributes& A, const Attributes& B, const Attributes& C, bool ta, bool tb, const void* a,
              const void* b, void* out, float scale, float keep, const void* added) {
  const auto* bias = static_cast<const T*>(added);
  const std::int64_t k = ta ? A.rows : A.columns;
  for (std::int64_t i = 0; i < C.get(kBatch, 1); ++i) {
    const T *x = static_cast<const T*>(a) + i * A.get(kStride, 0),
            *y = static_cast<const T*>(b) + i * B.get(kStride, 0);
    T* z = static_cast<T*>(out) + i * C.get(kStride, 0);
    for (std::int64_t column = 0; column < C.columns; ++column)
      for (std::int64_t row = 0; row < C.rows; ++row) {
        float sum = 0;
        for (std::int64_t j = 0; j < k; ++j)
          sum += (ta ? x[row * A.leading + j] : x[j * A.leading + row]) *
                 (tb ? y[j * B.leading + column] : y[column * B.leading + j]);
        T& to = z[column * C.leading + row];
        to = scale * sum + (keep == 0 ? 0 : keep * to) + (bias ? static_cast<float>(bias[row]) : 0);
      }
  }
}

}  // namespace

extern "C" {
std::size_t cublasLtGetVersion() { return 130000; }
int cublasLtCreate(void** handle) {
  static int one;
  return *handle = &one, 0;
}
int cublasLtMatmulDescCreate(Attributes** made, int, int) { return *made = new Attributes, 0; }
int cublasLtMatmulDescSetAttribute(Attributes* of, int which, const void* value, std::size_t bytes) {
  return of->put(which, value, bytes);
}
int cublasLtMatrixLayoutCreate(Attributes** made, int type, std::uint64_t rows, std::uint64_t columns,
                               std::int64_t leading) {
  *made = new Attributes;
  (*made)->type = type;
  (*made)->rows = static_cast<std::int64_t>(rows);
  (*made)->columns = static_cast<std::int64_t>(columns);
  (*made)->leading = leading;
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(Attributes* of, int which, const void* value, std::size_t bytes) {
  return of->put(which, value, bytes);
}
int cublasLtMatmulPreferenceCreate(Attributes** made) { return *made = new Attributes, 0; }
int cublasLtMatmulPreferenceSetAttribute(Attributes* of, int which, const void* value, std::size_t bytes) {
  return of->put(which, value, bytes);
}
int cublasLtMatmulAlgoGetHeuristic(void*, Attributes* d, Attributes* a, Attributes* b, Attributes* c, Attributes*,
                                   Attributes*, int wanted, Heuristic* found, int* count) {
  const int status = check(*d, *a, *b, *c);
  *count = status == 0 && wanted > 0 ? 1 : 0;
  if (*count == 1) *found = {};
  return status;
}
int cublasLtMatmul(void*, Attributes* d, const void* alpha, const void* a, Attributes* la, const void* b,
                   Attributes* lb, const void* beta, const void* c, Attributes* lc, void* out, Attributes* lo,
                   const void*, void*, std::size_t, void* stream) {
  if (const int status = check(*d, *la, *lb, *lc); status != 0) return status;
  if (lc != lo || c != out) return kUnsupported;
  const float scale = *static_cast<const float*>(alpha), keep = *static_cast<const float*>(beta);
  const bool ta = d->get(kTransposeA, 0) != 0, tb = d->get(kTransposeB, 0) != 0;
  const Attributes A = *la, B = *lb, C = *lc;
  const std::int64_t epilogue = d->get(kEpilogue, 1);
  if (epilogue != 1 && epilogue != kAddBias) return kUnsupported;
  const void* bias = epilogue == kAddBias ? reinterpret_cast<const void*>(d->get(kBiasPointer, 0)) : nullptr;
  if (epilogue == kAddBias && !bias) return kBad;
  emulated_gpu::queue(stream, [=] {
    (A.type == kBf16 ? multiply<emulated_gpu::Bf16> : multiply<float>)(A, B, C, ta, tb, a, b, out, scale, keep, bias);
  });
  return 0;
}
}
