// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/cublaslt.h"

#include <fmt/format.h>

#include "gpu_probe/backend.h"

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
Expected<CublasLt::Layout> CublasLt::layout(int type, std::int64_t rows, std::int64_t columns, std::int64_t batch) {
  Layout made = nullptr;
  int failed = layout_(&made, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns), rows);
  const auto count = static_cast<std::int32_t>(batch);
  const std::int64_t stride = rows * columns;
  if (failed == 0) failed = set_layout_(made, kLayoutBatchCount, &count, sizeof count);
  if (failed == 0) failed = set_layout_(made, kLayoutBatchStride, &stride, sizeof stride);
  if (failed != 0)
    return device_error(fmt::format("cublasLt takes no {} x {} matrix (status {})", rows, columns, failed));
  return made;
}

Expected<std::function<int(Stream)>> CublasLt::plan(const ProbeCall& call, ProbePrecision precision, Pointer a,
                                                    Pointer b, Pointer c, Pointer workspace) {
  if (!library_.usable())
    return device_error("no cublasLt: " + library_.problem(), "put the folder of libcublasLt into LD_LIBRARY_PATH");
  if (!handle_)
    if (const int failed = create_(&handle_); failed != 0)
      return device_error(fmt::format("cublasLt does not start (status {})", failed));
  const std::int64_t batch = call[0], m = call[1], n = call[2], k = call[3];
  const bool transpose_a = call[4] != 0, transpose_b = call[5] != 0;
  if (batch > INT32_MAX) return device_error("cublasLt takes no more than 2^31 products at once");
  const int type = precision == ProbePrecision::bf16 ? kRealBf16 : kReal32;
  const int compute = precision == ProbePrecision::tf32 ? kComputeTf32 : kCompute32;
  Description description = nullptr;
  int failed = description_(&description, compute, kReal32);
  // The library counts by columns: C^T = B^T A^T, and a row-major matrix is its transpose there.
  const std::int32_t first = transpose_b ? kTransposedOperand : kPlainOperand,
                     second = transpose_a ? kTransposedOperand : kPlainOperand;
  if (failed == 0) failed = set_description_(description, kDescTransposeA, &first, sizeof first);
  if (failed == 0) failed = set_description_(description, kDescTransposeB, &second, sizeof second);
  Preference preference = nullptr;
  const std::uint64_t most = kWorkspace;
  if (failed == 0) failed = preference_(&preference);
  if (failed == 0) failed = set_preference_(preference, kPreferenceWorkspace, &most, sizeof most);
  if (failed != 0) return device_error(fmt::format("cublasLt takes no such product (status {})", failed));
  const auto lb = layout(type, transpose_b ? k : n, transpose_b ? n : k, batch);
  const auto la = layout(type, transpose_a ? m : k, transpose_a ? k : m, batch);
  const auto lc = layout(type, n, m, batch);
  for (const auto* made : {&la, &lb, &lc})
    if (!*made) return made->error();
  LtHeuristic best{};
  int found = 0;
  failed = heuristic_(handle_, description, *lb, *la, *lc, *lc, preference, 1, &best, &found);
  if (failed != 0 || found == 0 || best.status != 0)
    return device_error(
        fmt::format("cublasLt has no algorithm for {} x {} x {} x {} (status {})", batch, m, n, k, failed));
  return std::function<int(Stream)>([=, this, lb = *lb, la = *la, lc = *lc](Stream stream) {
    const float one = 1, zero = 0;
    const auto pointer = [](Pointer p) { return reinterpret_cast<void*>(p); };
    return matmul_(handle_, description, &one, pointer(b), lb, pointer(a), la, &zero, pointer(c), lc, pointer(c), lc,
                   best.algorithm, pointer(workspace), kWorkspace, stream);
  });
}

}  // namespace turnpoint::probe::cuda
