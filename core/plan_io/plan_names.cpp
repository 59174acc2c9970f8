// SPDX-License-Identifier: Apache-2.0
#include "core/plan_io/plan_names.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace turnpoint {

std::vector<std::string> loop_names(const Operator& op) {
  std::vector<std::string> names;
  std::map<DimName, int> seen;
  for (const LoopDimension& dim : op.dims) {
    const int count = ++seen[dim.name];
    names.push_back(count > 1 ? fmt::format("{}-{}", to_string(dim.name), count) : std::string(to_string(dim.name)));
  }
  return names;
}

std::string memory_key(std::size_t part) { return std::string(to_string(static_cast<MemoryPart>(part))); }

std::string compute_key(std::size_t part) { return std::string(to_string(static_cast<ComputePart>(part))); }

std::string network_key(std::size_t part) {
  std::string key(to_string(static_cast<NetworkPart>(part)));
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace turnpoint
