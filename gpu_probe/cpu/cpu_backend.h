// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

/// One rank of a CPU: a core's worth of kernels. `ranks` share the machine.
std::unique_ptr<Backend> make_cpu_backend(int ranks, std::uint64_t seed);

/// The cores that this process may use, which a container may make fewer than the machine has.
int usable_cores();

/// "devices" of this machine's CPU ranks, its cores, NUMA nodes and memory.
nlohmann::json describe_cpu(int ranks);

}  // namespace turnpoint::probe
