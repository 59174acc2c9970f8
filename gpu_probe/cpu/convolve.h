// SPDX-License-Identifier: Apache-2.0
// Convolutions by whatever is best on this machine: what is measured and what steps run.
#pragma once

#include "gpu_probe/cpu/onednn.h"

namespace turnpoint::probe {

/// Elements of the scratch memory that convolve() wants.
std::int64_t convolution_scratch(ConvolutionPhase phase, const ConvolutionSizes& z);

/// forward: a x, b weight, to y; data: a weight, b dy, to dx; filter: a x, b dy, to dweight. oneDNN's kernel where
/// blas() is oneDNN and it has one, but for two cases that are slower so: windows of one element, which are plain
/// products, and gradients of very few channels, which it pads to a vector. Else products over unrolled windows.
void convolve(ConvolutionPhase phase, const ConvolutionSizes& z, const float* a, const float* b, float* to,
              float* scratch);

}  // namespace turnpoint::probe
