// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

/// One rank of a CPU: a core's worth of kernels. `ranks` share the machine.
std::unique_ptr<Backend> make_cpu_backend(int ranks, std::uint64_t seed);

/// The cores that this process may use, which a container may make fewer than the machine has.
int usable_cores();

/// Caches of the cores that this process may use; what is usual where the system does not say. The processor itself is
/// not asked: it may tell what the whole host has, of which a virtual machine has a part.
struct Caches {
  std::int64_t last_bytes = 0;   ///< the largest of each core, each shared one counted once
  std::int64_t inner_bytes = 0;  ///< the next one of one core; 0: there is none
};
Caches usable_caches();

/// "devices" of this machine's CPU ranks, its cores, NUMA nodes and memory.
nlohmann::json describe_cpu(int ranks);

}  // namespace turnpoint::probe
