// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <filesystem>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/measured/profile_builder.h"
#include "core/hardware/naming.h"
#include "core/hardware/probe_local.h"

namespace turnpoint {

namespace {

bool is_file(const std::string& name) {
  std::error_code ec;
  return std::filesystem::is_regular_file(name, ec);
}

constexpr std::int64_t kMostCores = 64;
constexpr double kLeastSpeed = 1e-3;
constexpr std::string_view kLocalCores = "local:";

/// "local:N" is N cores of this machine, "local:N@S" the same at the part S of their speed. What was measured is of
/// cores as they are.
Expected<ClusterPtr> some_cores(const std::string& name) {
  const auto words = split(std::string_view(name).substr(kLocalCores.size()), '@');
  const auto cores = parse_int(words.front());
  const auto speed = words.size() == 2 ? parse_double(words[1]) : words.size() == 1 ? std::optional(1.0) : std::nullopt;
  if (!cores || *cores < 1 || *cores > kMostCores || !speed || !(*speed >= kLeastSpeed && *speed <= 1))
    return usage_error(fmt::format(
        "hardware '{}' is not local:CORES or local:CORES@SPEED, up to {} cores at a part from {} to 1 of their speed",
        name, kMostCores, kLeastSpeed));
  const auto all = local_hardware();
  if (!all) return all.error();
  auto cluster = std::make_shared<Cluster>(**all);
  cluster->nodes = 1;
  cluster->devices_per_node = static_cast<int>(*cores);
  cluster->groups.clear();
  cluster->pods.clear();
  // Parts of one machine that are joined reach each other as its cores do.
  cluster->links[kInterNode] = cluster->links[kIntraNode];
  cluster->name = name;
  DeviceType& core = cluster->device;
  if (*speed < 1) {
    core.name = fmt::format("{} at {}", core.name, *speed);
    for (double* rate :
         {&core.peak_fp32, &core.peak_bf16, &core.peak_fp8, &core.memory_bandwidth, &core.cache_bandwidth})
      *rate *= *speed;
    for (double* launch : {&core.launch_s, &core.product_launch_s}) *launch /= *speed;
    forget_operator_times(*cluster);
    cluster->notes.push_back(
        fmt::format("cores that are to run at {} of their speed: validate makes a rank so slow "
                    "with --slow RANK:{:.4g}",
                    *speed, 1 / *speed));
  }
  cluster->title = cluster_title(1, cluster->devices_per_node, core.name);
  return ClusterPtr(std::move(cluster));
}

Expected<ClusterPtr> open_one(const std::string& name) {
  if (name == "local") return local_hardware();
  if (name.starts_with(kLocalCores) && !is_file(name)) return some_cores(name);
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
