// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/convolve.h"

#include "gpu_probe/cpu/blas.h"

namespace turnpoint::probe {

namespace {

/// Fewer channels than this are not worth a vector's width in a gradient (tests/bench/cpu_kernels_bench.cpp: with 1 and
/// 3 channels oneDNN takes 7 and 3 times as long as unrolled windows, with 6 three quarters).
constexpr std::int64_t kLeastChannels = 4;

const OnednnConvolution* best(ConvolutionPhase phase, const ConvolutionSizes& z) {
  if (!blas().onednn || is_product(z)) return nullptr;
  if (phase == ConvolutionPhase::data && z.c / z.groups < kLeastChannels) return nullptr;
  return OnednnConvolution::find(phase, z);
}

}  // namespace

std::int64_t convolution_scratch(ConvolutionPhase phase, const ConvolutionSizes& z) {
  if (const auto* made = best(phase, z)) return made->scratch();
  return is_product(z) ? 0 : z.c / z.groups * z.r * z.s * z.p * z.q;
}

void convolve(ConvolutionPhase phase, const ConvolutionSizes& z, const float* a, const float* b, float* to,
              float* scratch) {
  const OnednnConvolution* made = best(phase, z);
  if (made && made->run(a, b, to, scratch)) return;
  // Should the library fail after all, its scratch memory may be too small for ours.
  std::vector<float> own;
  if (made) {
    own.resize(static_cast<std::size_t>(z.c / z.groups * z.r * z.s * z.p * z.q));
    scratch = own.data();
  }
  const auto kernel = phase == ConvolutionPhase::forward ? convolution_forward
                      : phase == ConvolutionPhase::data  ? convolution_data
                                                         : convolution_filter;
  kernel(z, blas().function, a, b, to, scratch);
}

}  // namespace turnpoint::probe
