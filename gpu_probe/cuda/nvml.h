// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library: clocks, temperature, throttling, PCIe, NVLink, what joins the GPUs of a host. Everything
// in it is optional. Declared here, so that nothing of NVIDIA's is needed to build it
// (tests/gpu_probe/cuda_declarations_test.cpp compares with nvml.h where that is installed).
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/hardware/host_topology.h"
#include "gpu_probe/cuda/library.h"
#include "gpu_probe/job/backend.h"

namespace turnpoint::probe::cuda {

using NvmlDevice = struct NvmlDeviceTag*;

/// nvmlPciInfo_t
struct NvmlPci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

/// nvmlFieldValue_t, whose value is a union of 8 bytes
struct NvmlField {
  unsigned field, scope;
  long long timestamp, latency;
  int type, result;  ///< type 1: an unsigned in the value's first bytes
  unsigned long long value;
};

inline constexpr int kNvmlSensorGpu = 0, kNvmlClockMultiprocessor = 1, kNvmlClockMemory = 2, kNvmlUnsigned = 1;
inline constexpr unsigned kNvmlScopeNode = 0, kNvmlFieldNvlinkSpeed = 90;  ///< MB/s of one link in one direction
inline constexpr int kNvmlEndGpu = 0, kNvmlEndNpu = 1, kNvmlEndSwitch = 2, kNvmlEndUnknown = 0xff;  ///< of an NVLink
inline constexpr int kNvmlPeerRead = 0, kNvmlPeerWrite = 1, kNvmlPeerNvlink = 2;
/// nvmlGpuTopologyLevel_t
inline constexpr int kNvmlInternal = 0, kNvmlSingle = 10, kNvmlMultiple = 20, kNvmlHostbridge = 30, kNvmlNode = 40,
                     kNvmlSystem = 50;

/// 0 is success everywhere. The first ones every library has; of the others each may be null.
struct NvmlFunctions {
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver)(char*, unsigned) = nullptr;
  int (*by_pci)(const char*, NvmlDevice*) = nullptr;
  int (*clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*most_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*power)(NvmlDevice, unsigned*) = nullptr;
  int (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  int (*pcie_generation)(NvmlDevice, unsigned*) = nullptr;
  int (*pcie_width)(NvmlDevice, unsigned*) = nullptr;
  int (*link_state)(NvmlDevice, unsigned link, int*) = nullptr;
  int (*link_version)(NvmlDevice, unsigned link, unsigned*) = nullptr;

  const char* (*error_text)(int) = nullptr;
  int (*link_end)(NvmlDevice, unsigned link, int* kind) = nullptr;
  int (*link_pci)(NvmlDevice, unsigned link, NvmlPci*) = nullptr;
  int (*ancestor)(NvmlDevice, NvmlDevice, int* level) = nullptr;
  int (*peer)(NvmlDevice, NvmlDevice, int capability, int* status) = nullptr;
  int (*memory_affinity)(NvmlDevice, unsigned words, unsigned long* nodes, unsigned scope) = nullptr;
  int (*core_affinity)(NvmlDevice, unsigned words, unsigned long* cores) = nullptr;
  int (*fields)(NvmlDevice, int count, NvmlField*) = nullptr;
  int (*device_count)(unsigned*) = nullptr;
};

class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  const Library& loaded() const { return library_; }
  const std::string& problem() const { return problem_; }  ///< empty while it works
  std::string driver_version() const;
  /// Chooses the device by its PCI address "0000:1b:00.0".
  void select(const std::string& pci);
  nlohmann::json describe() const;  ///< of the chosen device: PCIe, NVLink, clocks
  Conditions conditions() const;
  /// What joins the GPUs with these names and PCI addresses, in their order. What NVML does not tell of places is
  /// looked up below `system`; what nobody tells stays empty, with a note.
  HostTopology topology(std::vector<HostGpu> gpus, const std::filesystem::path& system = "/sys") const;

 private:
  Library library_;
  std::string problem_;
  bool started_ = false;
  NvmlDevice device_ = nullptr;
  NvmlFunctions nvml_;
};

/// nvmlNvlinkVersion_t is an enumeration, no version: 5 is "3.1". Empty for a value that nobody knows.
std::string nvlink_version(unsigned code);
/// The most that any device has; asking for one that a device lacks is an error without a meaning.
inline constexpr unsigned kNvmlMostLinks = 36;

}  // namespace turnpoint::probe::cuda
