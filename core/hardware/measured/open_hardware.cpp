// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/hardware/probe_local.h"

namespace turnpoint {

Expected<ClusterPtr> open_hardware(const std::string& specification) {
  if (specification.empty()) return usage_error("no hardware named: give a preset or the path of a hardware profile");
  if (specification == "local") return local_hardware();
  std::error_code ec;
  const bool looks_like_a_path = specification.find('/') != std::string::npos || specification.ends_with(".json");
  if (looks_like_a_path || std::filesystem::is_regular_file(specification, ec))
    return read_hardware_file(specification);
  if (specification.find('+') == std::string::npos) return cluster_preset(specification);
  std::vector<ClusterPtr> parts;
  for (const auto name : split(specification, '+')) {
    auto part = cluster_preset(std::string(name));
    if (!part) return part.error();
    parts.push_back(*part);
  }
  return join_clusters(parts);
}

}  // namespace turnpoint
