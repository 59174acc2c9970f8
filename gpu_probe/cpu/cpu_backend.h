// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

/// One rank of a CPU: a core's worth of kernels. `ranks` share the machine. `step_bytes` as ProbeJob has it.
std::unique_ptr<Backend> make_cpu_backend(int ranks, std::uint64_t seed, std::int64_t step_bytes = 0);

/// The cores that this process may use, which a container may make fewer than the machine has.
int usable_cores();

/// Bytes of the last caches of all cores that this process may use, each shared one counted once; 32 MiB where the
/// system does not say. The processor itself is not asked: it may tell what the whole host has, of which a virtual
/// machine has a part.
std::int64_t last_caches_bytes();

/// "devices" of this machine's CPU ranks, its cores, NUMA nodes and memory.
nlohmann::json describe_cpu(int ranks);

}  // namespace turnpoint::probe
