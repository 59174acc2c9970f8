// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

namespace cuda {
struct Gpu;
}

/// How many GPUs the driver shows. Error: nothing can be measured over CUDA here, no driver or no device.
Expected<int> visible_gpus();

class GpuBackend : public Backend {
 public:
  virtual cuda::Gpu& gpu() = 0;
};

/// One GPU. Everything of CUDA is loaded at run time; libraries that are missing take their kernels along, not the
/// rest.
Expected<std::unique_ptr<GpuBackend>> open_cuda_backend(int device, std::uint64_t seed);

}  // namespace turnpoint::probe
