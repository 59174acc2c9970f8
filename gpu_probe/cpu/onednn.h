// SPDX-License-Identifier: Apache-2.0
// oneDNN, looked for at run time (libdnnl.so.3 or .2; its C interface declared here, since the two differ): matrix
// products and convolutions of row-major fp32 tensors on one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gpu_probe/cpu/gemm.h"
#include "gpu_probe/cpu/kernels.h"

namespace turnpoint::probe {

class Onednn;

/// The library, loaded once per process; null where it is not there. `missing` says what was looked for.
const Onednn* onednn();
const std::vector<std::string>& onednn_missing();
std::string onednn_version(const Onednn& library);  ///< "2.6.3"

/// C = A B by its sgemm. Precondition: onednn().
void onednn_gemm(const GemmShape& shape, const float* a, const float* b, float beta, float* c);

enum class ConvolutionPhase : std::uint8_t { forward, data, filter };

/// A convolution in the layouts that the library likes best, with the changes from and to row-major that this takes.
class OnednnConvolution {
 public:
  /// Made once per thread and kept; null where the library is not there or has none for these sizes.
  static const OnednnConvolution* find(ConvolutionPhase phase, const ConvolutionSizes& sizes);
  virtual ~OnednnConvolution() = default;

  virtual std::int64_t scratch() const = 0;  ///< elements
  /// forward: a x, b weight, to y; data: a weight, b dy, to dx; filter: a x, b dy, to dweight. False: the library
  /// failed, and what is in `to` means nothing.
  virtual bool run(const float* a, const float* b, float* to, float* scratch) const = 0;
  virtual std::string implementation() const = 0;  ///< the library's name of the kernel: "jit:avx512_core"
};

}  // namespace turnpoint::probe
