// SPDX-License-Identifier: Apache-2.0
// Kernels on a CUDA device, each in its file of this folder. Their results are not initialised when they are handed in.
#pragma once

#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step::in_cuda {

struct GpuKernels {
  static const Kernel contraction, convolution, elementwise, softmax, normalisation, batch_normalisation, pooling,
      reduction, view, concat, slice, embedding, loss_statistics, cross_entropy, recurrent, dispatch, combine, opaque,
      attention;
};

}  // namespace turnpoint::step::in_cuda
