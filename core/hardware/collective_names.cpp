// SPDX-License-Identifier: Apache-2.0
// By itself, because the probe links no more of the core than it needs.
#include <iterator>

#include "core/hardware/cluster.h"

namespace turnpoint {

namespace {
constexpr const char* kCollectiveNames[] = {"all_reduce", "all_gather", "reduce_scatter",
                                            "all_to_all", "broadcast",  "send"};
}

const char* to_string(Collective kind) { return kCollectiveNames[static_cast<std::size_t>(kind)]; }

std::optional<Collective> parse_collective(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kCollectiveNames); ++i)
    if (name == kCollectiveNames[i]) return static_cast<Collective>(i);
  return std::nullopt;
}

}  // namespace turnpoint
