// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each: the step's exchanges from GPU to GPU.
#pragma once

#include <memory>

#include "gpu_probe/step/communicator.h"
#include "gpu_probe/step/placement_links.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::step::in_cuda {

/// Collectives over equal pieces are NCCL's own; uneven ones are rings of sends. `exchanges` are of this process's open
/// device and must outlive the communicator. Sums are taken in NCCL's order.
std::unique_ptr<Communicator> gpu_communicator(probe::GpuCollectives& exchanges);
/// Ranks with a GPU each, this process's being open. All queue their transfers on a second stream in the one order that
/// the program has for them, so that none waits in a circle: with NCCL a send may wait for who receives it.
std::unique_ptr<PlacementLinks> gpu_links(const PlacedProgram& program, probe::GpuCollectives& exchanges);

}  // namespace turnpoint::step::in_cuda
