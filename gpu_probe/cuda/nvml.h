// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library: clocks, temperature, throttling, PCIe, NVLink. Everything in it is optional.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "gpu_probe/backend.h"
#include "gpu_probe/cuda/library.h"

namespace turnpoint::probe::cuda {

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

 private:
  using Handle = struct NvmlDeviceTag*;
  Library library_;
  std::string problem_;
  bool started_ = false;
  Handle device_ = nullptr;
  int (*init_)() = nullptr;
  int (*shutdown_)() = nullptr;
  int (*driver_)(char*, unsigned) = nullptr;
  int (*by_pci_)(const char*, Handle*) = nullptr;
  int (*clock_)(Handle, int, unsigned*) = nullptr;
  int (*most_clock_)(Handle, int, unsigned*) = nullptr;
  int (*temperature_)(Handle, int, unsigned*) = nullptr;
  int (*power_)(Handle, unsigned*) = nullptr;
  int (*reasons_)(Handle, unsigned long long*) = nullptr;
  int (*pcie_generation_)(Handle, unsigned*) = nullptr;
  int (*pcie_width_)(Handle, unsigned*) = nullptr;
  int (*link_state_)(Handle, unsigned, unsigned*) = nullptr;
  int (*link_version_)(Handle, unsigned, unsigned*) = nullptr;
};

}  // namespace turnpoint::probe::cuda
