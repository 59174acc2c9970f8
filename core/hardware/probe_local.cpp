// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/probe_local.h"

#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <cstdlib>

#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

/// What one core of today reaches, for want of a measurement.
constexpr double kCoreFlop = 64e9, kCoreBandwidth = 8e9, kBetweenCores = 4e9, kBarrier = 2e-6, kCoreLaunch = 1e-6;

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::clamp(CPU_COUNT(&set), 1, 64) : 1;
}

ClusterPtr assumed() {
  auto cluster = std::make_shared<Cluster>();
  const int cores = usable_cores();
  const std::int64_t memory = std::max<std::int64_t>(1, sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  cluster->nodes = 1;
  cluster->devices_per_node = cores;
  cluster->name = "cpu" + shape_suffix(1, cores);
  cluster->device.name = "CPU core";
  cluster->title = cluster_title(1, cores, cluster->device.name);
  cluster->device.memory_bytes = std::max<std::int64_t>(1, memory / cores);
  cluster->device.peak_fp32 = cluster->device.peak_bf16 = kCoreFlop;
  cluster->device.memory_bandwidth = kCoreBandwidth;
  cluster->device.launch_s = kCoreLaunch;
  cluster->links[kIntraNode] = {"shared memory", kBetweenCores, kBarrier};
  cluster->notes = {
      "this machine was not measured yet: its CPU cores with assumed figures; run 'turnpoint-cli measure'"};
  return cluster;
}

}  // namespace

std::filesystem::path local_profile_path() {
  const char* data = std::getenv("XDG_DATA_HOME");
  if (data && data[0] == '/') return std::filesystem::path(data) / "turnpoint" / "local.json";
  const char* home = std::getenv("HOME");
  if (home && home[0] == '/') return std::filesystem::path(home) / ".local" / "share" / "turnpoint" / "local.json";
  return {};
}

Expected<ClusterPtr> local_hardware() {
  const auto path = local_profile_path();
  std::error_code ec;
  if (!path.empty() && std::filesystem::exists(path, ec)) return read_hardware_profile(path.string());
  return assumed();
}

}  // namespace turnpoint
