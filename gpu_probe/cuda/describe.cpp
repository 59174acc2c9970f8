// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/describe.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace turnpoint::probe::cuda {

namespace {

nlohmann::json device(const Gpu& gpu, int index) {
  const Driver& driver = gpu.driver;
  Device handle = 0;
  if (driver.device_get(&handle, index) != 0) return nlohmann::json::object();
  char name[256] = {};
  std::size_t bytes = 0;
  driver.device_name(name, sizeof name - 1, handle);
  driver.device_memory(&bytes, handle);
  const auto get = [&](Attribute which) { return gpu.attribute(which, handle); };
  // Two transfers per clock of the memory bus.
  const double bandwidth = 2.0 * get(kMemoryClockKilohertz) * 1e3 * get(kMemoryBusBits) / 8.0;
  return {{"index", index},
          {"name", name},
          {"kind", "cuda"},
          {"memory_bytes", bytes},
          {"compute_capability", fmt::format("{}.{}", get(kComputeMajor), get(kComputeMinor))},
          {"multiprocessors", get(kMultiprocessors)},
          {"clock_mhz", get(kClockKilohertz) / 1000},
          {"l2_bytes", get(kL2Bytes)},
          {"memory_bus_bits", get(kMemoryBusBits)},
          {"bus_bandwidth_bytes_per_s", bandwidth}};
}

}  // namespace

nlohmann::json describe(Gpu& gpu) {
  nlohmann::json described;
  described["devices"] = nlohmann::json::array();
  std::vector<HostGpu> gpus;
  for (int i = 0; i < gpu.count; ++i) {
    const auto& one = described["devices"].emplace_back(device(gpu, i));
    HostGpu& listed = gpus.emplace_back();
    Device handle = 0;
    if (one.empty() || gpu.driver.device_get(&handle, i) != 0) continue;
    listed.name = one["name"];
    listed.pci = gpu.pci_address(handle);
  }
  described["device"] = gpu.index;
  described["topology"] = gpu.nvml.describe();
  described["topology"].update(topology_json(gpu.nvml.topology(std::move(gpus))));
  int version = 0;
  gpu.driver.driver_version(&version);
  auto& libraries = described["libraries"] = nlohmann::json::array();
  libraries.push_back({{"name", "CUDA driver"},
                       {"version", gpu.nvml.driver_version()},
                       {"cuda", fmt::format("{}.{}", version / 1000, version / 10 % 100)}});
  std::vector<std::string> missing;
  const auto add = [&](const char* name, const std::string& library_version, const std::string& problem) {
    if (problem.empty())
      libraries.push_back({{"name", name}, {"version", library_version}});
    else
      missing.push_back(fmt::format("{}: {}", name, problem));
  };
  add("NVRTC", gpu.nvrtc.version(), gpu.nvrtc.loaded().problem());
  add("cublasLt", gpu.matrices.version(), gpu.matrices.loaded().problem());
  add("cuDNN", gpu.convolutions.version(), gpu.convolutions.loaded().problem());
  add("NVML", gpu.nvml.driver_version(), gpu.nvml.problem());
  if (!gpu.no_kernels.empty()) missing.push_back("own kernels: " + gpu.no_kernels);
  described["missing"] = missing;
  return described;
}

}  // namespace turnpoint::probe::cuda
