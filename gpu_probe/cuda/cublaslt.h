// SPDX-License-Identifier: Apache-2.0
// Matrix products by cublasLt, declared here so that no CUDA is needed to build (see driver.h).
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

#include "core/hardware/probe_job.h"
#include "gpu_probe/cuda/driver.h"

namespace turnpoint::probe::cuda {

/// cublasLtMatmulHeuristicResult_t.
struct LtHeuristic {
  std::uint64_t algorithm[8];
  std::size_t workspace;
  int status;
  float waves;
  int reserved[4];
};
/// Numbers of cublas' enumerations.
inline constexpr int kReal32 = 0, kRealBf16 = 14, kCompute32 = 68, kComputeTf32 = 77, kPlainOperand = 0,
                     kTransposedOperand = 1, kDescTransposeA = 3, kDescTransposeB = 4, kDescEpilogue = 7,
                     kDescBiasPointer = 8, kEpilogueBias = 4, kLayoutBatchCount = 5, kLayoutBatchStride = 6,
                     kPreferenceWorkspace = 1,
                     kPreferenceAlignment = 5;  ///< of A; those of B, C and D follow

/// C = op(A) op(B) of row-major matrices in fp32 or bf16, `batch` of them at even distances; strides in elements.
struct LtProduct {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  std::int64_t leading_a = 0, leading_b = 0, leading_c = 0, stride_a = 0, stride_b = 0, stride_c = 0;
  bool bias = false;              ///< a number a column is added
  std::uint32_t alignment = 256;  ///< bytes that all addresses are a multiple of
  ProbePrecision precision = ProbePrecision::fp32;
  friend auto operator<=>(const LtProduct&, const LtProduct&) = default;
};

class CublasLt {
 public:
  static constexpr std::size_t kWorkspace = 64u << 20;

  CublasLt();
  const Library& loaded() const { return library_; }
  std::string version() const;

  /// C = A B as a matmul call says it; row-major operands at these addresses. The plan is made once, with the
  /// algorithm that the library expects to be fastest.
  using Product = std::function<int(Stream, Pointer a, Pointer b, Pointer c, Pointer bias)>;
  Expected<Product> plan(const LtProduct& product, Pointer workspace);
  Expected<std::function<int(Stream)>> plan(const ProbeCall& call, ProbePrecision precision, Pointer a, Pointer b,
                                            Pointer c, Pointer workspace);

 private:
  using Handle = struct LtHandleTag*;
  using Description = struct LtDescriptionTag*;
  using Layout = struct LtLayoutTag*;
  using Preference = struct LtPreferenceTag*;
  Expected<Layout> layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t batch,
                          std::int64_t stride);

  Library library_;
  Handle handle_ = nullptr;
  std::size_t (*version_)() = nullptr;
  int (*create_)(Handle*) = nullptr;
  int (*description_)(Description*, int compute, int scale) = nullptr;
  int (*set_description_)(Description, int, const void*, std::size_t) = nullptr;
  int (*layout_)(Layout*, int type, std::uint64_t rows, std::uint64_t columns, std::int64_t stride) = nullptr;
  int (*set_layout_)(Layout, int, const void*, std::size_t) = nullptr;
  int (*preference_)(Preference*) = nullptr;
  int (*set_preference_)(Preference, int, const void*, std::size_t) = nullptr;
  int (*heuristic_)(Handle, Description, Layout, Layout, Layout, Layout, Preference, int, LtHeuristic*, int*) = nullptr;
  int (*matmul_)(Handle, Description, const void*, const void*, Layout, const void*, Layout, const void*, const void*,
                 Layout, void*, Layout, const void*, void*, std::size_t, Stream) = nullptr;
};

}  // namespace turnpoint::probe::cuda
