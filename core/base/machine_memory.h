// SPDX-License-Identifier: Apache-2.0
// How much memory this machine has, and how much of it can be had right now.
#pragma once

#include <cstdint>
#include <string_view>

namespace turnpoint {

/// Bytes; 0: the system does not say.
struct MachineMemory {
  std::int64_t total = 0;
  std::int64_t available = 0;  ///< without driving other programs out, and within this process's control group
};
MachineMemory machine_memory();

/// Of the text of /proc/meminfo.
MachineMemory parse_memory_information(std::string_view text);

}  // namespace turnpoint
