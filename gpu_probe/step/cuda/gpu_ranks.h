// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: the step's exchanges from GPU to GPU.
#pragma once

#include <memory>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::step::in_cuda {

/// Collectives over equal pieces are NCCL's own; uneven ones are rings of sends. `exchanges` are of this process's open
/// device and must outlive the communicator. Sums are taken in NCCL's order.
std::unique_ptr<Communicator> gpu_communicator(probe::GpuCollectives& exchanges);

}  // namespace turnpoint::step::in_cuda
