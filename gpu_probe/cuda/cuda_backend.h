// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu_probe/backend.h"

namespace turnpoint::probe {

/// Why nothing can be measured over CUDA here: no driver, no device. Empty if something can.
std::optional<Error> cuda_unavailable();

/// One GPU. Everything of CUDA is loaded at run time; libraries that are missing take their kernels along, not the
/// rest.
Expected<std::unique_ptr<Backend>> open_cuda_backend(int device, std::uint64_t seed);

}  // namespace turnpoint::probe
