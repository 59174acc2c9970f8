// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "gpu_probe/cuda/gpu.h"

namespace turnpoint::probe::cuda {

/// Every kind of call on small random inputs, its result against the plain loops of gpu_probe/cpu: messages of type
/// "check" with call, precision, error (norm of the difference over the norm) and tolerance. Results are poisoned
/// before.
std::vector<nlohmann::json> check_kernels(Gpu& gpu);

}  // namespace turnpoint::probe::cuda
