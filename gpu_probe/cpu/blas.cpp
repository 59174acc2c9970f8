// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/blas.h"

#include <dlfcn.h>
#include <cstdlib>
#include <limits>

#include "gpu_probe/cpu/onednn.h"

namespace turnpoint::probe {

namespace {

using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);
CblasSgemm g_cblas = nullptr;
CpuKernels g_wanted = CpuKernels::automatic;

void cblas_gemm(const GemmShape& s, const float* a, const float* b, float beta, float* c) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  const auto fit = [](auto... sizes) { return ((sizes <= kMost) && ...); };
  if (!fit(s.m, s.n, s.k, s.lead_a(), s.lead_b(), s.lead_c())) return gemm(s, a, b, beta, c);
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  const auto i = [](std::int64_t value) { return static_cast<int>(value); };
  g_cblas(kRowMajor, s.transpose_a ? kTransposed : kPlain, s.transpose_b ? kTransposed : kPlain, i(s.m), i(s.n), i(s.k),
          1.0f, a, i(s.lead_a()), b, i(s.lead_b()), beta, c, i(s.lead_c()));
}

Blas find() {
  Blas found;
  if (g_wanted == CpuKernels::own) return found;
  if (const Onednn* library = onednn()) {
    found.function = onednn_gemm;
    found.name = "oneDNN";
    found.version = onednn_version(*library);
    found.onednn = true;
    return found;
  }
  found.missing = onednn_missing();
  // A rank is one core: threads of the library's own would fight with the other ranks.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library) g_cblas = reinterpret_cast<CblasSgemm>(dlsym(library, "cblas_sgemm"));
  if (g_cblas) {
    found.function = cblas_gemm;
    found.name = "OpenBLAS";
    found.version = "libopenblas.so.0";
    return found;
  }
  found.missing.push_back(std::string("libopenblas.so.0: ") + (library ? "has no cblas_sgemm" : "not found"));
  return found;
}

}  // namespace

Expected<void> choose_kernels(CpuKernels wanted) {
  g_wanted = wanted;
  if (wanted != CpuKernels::onednn || onednn()) return {};
  std::string looked;
  for (const auto& missing : onednn_missing()) looked += (looked.empty() ? "" : ", ") + missing;
  return Error{ErrorCode::device, "oneDNN is not there (" + looked + ")", {}, "install libdnnl, or take other kernels"};
}

CpuKernels chosen_kernels() { return g_wanted; }

const Blas& blas() {
  static const Blas chosen = find();
  return chosen;
}

}  // namespace turnpoint::probe
