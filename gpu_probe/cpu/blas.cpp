// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/blas.h"

#include <dlfcn.h>
#include <algorithm>
#include <cstdlib>
#include <limits>

namespace turnpoint::probe {

namespace {

// oneDNN's sgemm takes row-major matrices.
using DnnlSgemm = int (*)(char, char, std::int64_t, std::int64_t, std::int64_t, float, const float*, std::int64_t,
                          const float*, std::int64_t, float, float*, std::int64_t);
using CblasSgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                            int);
DnnlSgemm g_dnnl = nullptr;
CblasSgemm g_cblas = nullptr;

void dnnl_gemm(const GemmShape& s, const float* a, const float* b, float beta, float* c) {
  const int failed = g_dnnl(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, 1.0f, a, s.lead_a(), b,
                            s.lead_b(), beta, c, s.lead_c());
  if (failed != 0) gemm(s, a, b, beta, c);
}

void cblas_gemm(const GemmShape& s, const float* a, const float* b, float beta, float* c) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  if (std::max({s.m, s.n, s.k, s.lead_a(), s.lead_b(), s.lead_c()}) > kMost) return gemm(s, a, b, beta, c);
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  const auto i = [](std::int64_t value) { return static_cast<int>(value); };
  g_cblas(kRowMajor, s.transpose_a ? kTransposed : kPlain, s.transpose_b ? kTransposed : kPlain, i(s.m), i(s.n), i(s.k),
          1.0f, a, i(s.lead_a()), b, i(s.lead_b()), beta, c, i(s.lead_c()));
}

Blas find() {
  Blas found;
  // A rank is one core: threads of the library's own would fight with the other ranks.
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) setenv(name, "1", 1);
  for (const char* name : {"libdnnl.so.3", "libdnnl.so.2"}) {
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library) g_dnnl = reinterpret_cast<DnnlSgemm>(dlsym(library, "dnnl_sgemm"));
    if (g_dnnl) {
      found.function = dnnl_gemm;
      found.name = std::string("oneDNN (") + name + ")";
      return found;
    }
    found.missing.push_back(std::string(name) + ": " + (library ? "has no dnnl_sgemm" : "not found"));
  }
  void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (library) g_cblas = reinterpret_cast<CblasSgemm>(dlsym(library, "cblas_sgemm"));
  if (g_cblas) {
    found.function = cblas_gemm;
    found.name = "OpenBLAS (libopenblas.so.0)";
    return found;
  }
  found.missing.push_back(std::string("libopenblas.so.0: ") + (library ? "has no cblas_sgemm" : "not found"));
  return found;
}

}  // namespace

const Blas& blas() {
  static const Blas chosen = find();
  return chosen;
}

}  // namespace turnpoint::probe
