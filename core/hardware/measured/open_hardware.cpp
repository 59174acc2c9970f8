// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/hardware/probe_local.h"

namespace turnpoint {

namespace {

bool is_file(const std::string& name) {
  std::error_code ec;
  return std::filesystem::is_regular_file(name, ec);
}

Expected<ClusterPtr> open_one(const std::string& name) {
  if (name == "local") return local_hardware();
  const bool looks_like_a_path = name.find('/') != std::string::npos || name.ends_with(".json");
  return looks_like_a_path || is_file(name) ? read_hardware_file(name) : cluster_preset(name);
}

}  // namespace

Expected<ClusterPtr> open_hardware(const std::string& specification) {
  if (specification.empty()) return usage_error("no hardware named: give a preset or the path of a hardware profile");
  if (specification.find('+') == std::string::npos || is_file(specification)) return open_one(specification);
  std::vector<ClusterPtr> parts;
  for (const auto name : split(specification, '+')) {
    auto part = open_one(std::string(name));
    if (!part) return part.error();
    parts.push_back(*part);
  }
  return join_clusters(parts);
}

}  // namespace turnpoint
