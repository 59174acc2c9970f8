// SPDX-License-Identifier: Apache-2.0
// What a GPU run says of the machine first: devices, links between them, libraries found and missing.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "gpu_probe/cuda/gpu.h"

namespace turnpoint::probe::cuda {

nlohmann::json describe(Gpu& gpu);

}  // namespace turnpoint::probe::cuda
