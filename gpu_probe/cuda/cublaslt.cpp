// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/cublaslt.h"

#include <fmt/format.h>

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

CublasLt::CublasLt() {
  if (!library_.open({"libcublasLt.so.13", "libcublasLt.so.12"})) return;
  library_.load(version_, "cublasLtGetVersion") && library_.load(create_, "cublasLtCreate") &&
      library_.load(description_, "cublasLtMatmulDescCreate") &&
      library_.load(set_description_, "cublasLtMatmulDescSetAttribute") &&
      library_.load(layout_, "cublasLtMatrixLayoutCreate") &&
      library_.load(set_layout_, "cublasLtMatrixLayoutSetAttribute") &&
      library_.load(preference_, "cublasLtMatmulPreferenceCreate") &&
      library_.load(set_preference_, "cublasLtMatmulPreferenceSetAttribute") &&
      library_.load(heuristic_, "cublasLtMatmulAlgoGetHeuristic") && library_.load(matmul_, "cublasLtMatmul");
}

std::string CublasLt::version() const {
  if (!library_.usable()) return {};
  const std::size_t v = version_();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

// Descriptors live as long as the process: an item has a handful, and the process is short-lived.
Expected<CublasLt::Layout> CublasLt::layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t leading,
                                            std::int64_t batch, std::int64_t stride) {
  Layout made = nullptr;
  int failed = layout_(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), leading);
  const auto count = static_cast<std::int32_t>(batch);
  if (failed == 0) failed = set_layout_(made, kLayoutBatchCount, &count, sizeof count);
  if (failed == 0) failed = set_layout_(made, kLayoutBatchStride, &stride, sizeof stride);
  if (failed != 0)
    return device_error(fmt::format("cublasLt takes no {} x {} matrix (status {})", rows, columns, failed));
  return made;
}

Expected<CublasLt::Product> CublasLt::plan(const LtProduct& p, Pointer workspace) {
  if (!library_.usable())
    return device_error("no cublasLt: " + library_.problem(), "put the folder of libcublasLt into LD_LIBRARY_PATH");
  if (!handle_)
    if (const int failed = create_(&handle_); failed != 0)
      return device_error(fmt::format("cublasLt does not start (status {})", failed));
  if (p.batch > INT32_MAX) return device_error("cublasLt takes no more than 2^31 products at once");
  const int type = p.precision == ProbePrecision::bf16 ? kRealBf16 : kReal32;
  const int compute = p.precision == ProbePrecision::tf32 ? kComputeTf32 : kCompute32;
  Description description = nullptr;
  int failed = description_(&description, compute, kReal32);
  // The library counts by columns: C^T = B^T A^T, and a row-major matrix is its transpose there.
  const std::int32_t first = p.transpose_b ? kTransposedOperand : kPlainOperand,
                     second = p.transpose_a ? kTransposedOperand : kPlainOperand;
  if (failed == 0) failed = set_description_(description, kDescTransposeA, &first, sizeof first);
  if (failed == 0) failed = set_description_(description, kDescTransposeB, &second, sizeof second);
  if (p.bias) {
    const std::uint32_t epilogue = kEpilogueBias;
    if (failed == 0) failed = set_description_(description, kDescEpilogue, &epilogue, sizeof epilogue);
  }
  Preference preference = nullptr;
  const std::uint64_t most = kWorkspace;
  if (failed == 0) failed = preference_(&preference);
  if (failed == 0) failed = set_preference_(preference, kPreferenceWorkspace, &most, sizeof most);
  for (int operand = 0; operand < 4 && p.alignment < 256; ++operand)
    if (failed == 0)
      failed = set_preference_(preference, kPreferenceAlignment + operand, &p.alignment, sizeof p.alignment);
  if (failed != 0) return device_error(fmt::format("cublasLt takes no such product (status {})", failed));
  const auto lb = layout(type, p.transpose_b ? p.k : p.n, p.transpose_b ? p.n : p.k, p.leading_b, p.batch, p.stride_b);
  const auto la = layout(type, p.transpose_a ? p.m : p.k, p.transpose_a ? p.k : p.m, p.leading_a, p.batch, p.stride_a);
  const auto lc = layout(type, p.n, p.m, p.leading_c, p.batch, p.stride_c);
  for (const auto* made : {&la, &lb, &lc})
    if (!*made) return made->error();
  LtHeuristic best{};
  int found = 0;
  failed = heuristic_(handle_, description, *lb, *la, *lc, *lc, preference, 1, &best, &found);
  if (failed != 0 || found == 0 || best.status != 0)
    return device_error(
        fmt::format("cublasLt has no algorithm for {} x {} x {} x {} (status {})", p.batch, p.m, p.n, p.k, failed));
  return Product([=, this, lb = *lb, la = *la, lc = *lc, with_bias = p.bias](Stream stream, Pointer a, Pointer b,
                                                                             Pointer c, Pointer bias) {
    const float one = 1, zero = 0;
    if (with_bias)
      if (const int wrong = set_description_(description, kDescBiasPointer, &bias, sizeof bias); wrong != 0)
        return wrong;
    const auto pointer = [](Pointer address) { return reinterpret_cast<void*>(address); };
    return matmul_(handle_, description, &one, pointer(b), lb, pointer(a), la, &zero, pointer(c), lc, pointer(c), lc,
                   best.algorithm, pointer(workspace), kWorkspace, stream);
  });
}

Expected<std::function<int(Stream)>> CublasLt::plan(const ProbeCall& call, ProbePrecision precision, Pointer a,
                                                    Pointer b, Pointer c, Pointer workspace) {
  LtProduct p;
  p.batch = call[0], p.m = call[1], p.n = call[2], p.k = call[3];
  p.transpose_a = call[4] != 0, p.transpose_b = call[5] != 0;
  p.leading_a = p.transpose_a ? p.m : p.k, p.leading_b = p.transpose_b ? p.k : p.n, p.leading_c = p.n;
  p.stride_a = p.m * p.k, p.stride_b = p.k * p.n, p.stride_c = p.m * p.n;
  p.precision = precision;
  auto product = plan(p, workspace);
  if (!product) return product.error();
  return std::function<int(Stream)>(
      [=, product = std::move(*product)](Stream stream) { return product(stream, a, b, c, 0); });
}

}  // namespace turnpoint::probe::cuda
