// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/nvml.h"

#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

namespace turnpoint::probe::cuda {

namespace {

/// nvmlClocksEventReasons; being idle, asked for a clock, or in step with others is no fault of the moment.
std::string reasons_text(unsigned long long reasons) {
  constexpr struct {
    unsigned long long bit;
    const char* text;
  } kReasons[] = {{0x4, "power cap"},
                  {0x8, "hardware slowdown"},
                  {0x20, "too hot (software)"},
                  {0x40, "too hot (hardware)"},
                  {0x80, "external power brake"}};
  std::string text;
  for (const auto& reason : kReasons)
    if (reasons & reason.bit) text += (text.empty() ? "" : ", ") + std::string(reason.text);
  return text;
}

}  // namespace

std::string nvlink_version(unsigned code) {
  constexpr const char* kVersions[] = {"", "1.0", "2.0", "2.2", "3.0", "3.1", "4.0", "5.0", "6.0"};
  return code < std::size(kVersions) ? kVersions[code] : "";
}

Nvml::Nvml() {
  if (!library_.open({"libnvidia-ml.so.1"})) {
    problem_ = library_.problem();
    return;
  }
  NvmlFunctions& f = nvml_;
  library_.load(f.init, "nvmlInit_v2") && library_.load(f.shutdown, "nvmlShutdown") &&
      library_.load(f.driver, "nvmlSystemGetDriverVersion") &&
      library_.load(f.by_pci, "nvmlDeviceGetHandleByPciBusId_v2") && library_.load(f.clock, "nvmlDeviceGetClockInfo") &&
      library_.load(f.most_clock, "nvmlDeviceGetMaxClockInfo") &&
      library_.load(f.temperature, "nvmlDeviceGetTemperature") && library_.load(f.power, "nvmlDeviceGetPowerUsage") &&
      library_.load(f.reasons, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
      library_.load(f.pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration") &&
      library_.load(f.pcie_width, "nvmlDeviceGetCurrPcieLinkWidth") &&
      library_.load(f.link_state, "nvmlDeviceGetNvLinkState") &&
      library_.load(f.link_version, "nvmlDeviceGetNvLinkVersion");
  problem_ = library_.problem();
  if (!problem_.empty()) return;
  library_.load_if_there(f.error_text, "nvmlErrorString");
  library_.load_if_there(f.link_end, "nvmlDeviceGetNvLinkRemoteDeviceType");
  library_.load_if_there(f.link_pci, "nvmlDeviceGetNvLinkRemotePciInfo_v2");
  library_.load_if_there(f.ancestor, "nvmlDeviceGetTopologyCommonAncestor");
  library_.load_if_there(f.peer, "nvmlDeviceGetP2PStatus");
  library_.load_if_there(f.memory_affinity, "nvmlDeviceGetMemoryAffinity");
  library_.load_if_there(f.core_affinity, "nvmlDeviceGetCpuAffinity");
  library_.load_if_there(f.fields, "nvmlDeviceGetFieldValues");
  library_.load_if_there(f.device_count, "nvmlDeviceGetCount_v2");
  if (const int failed = f.init(); failed != 0)
    problem_ = fmt::format("{} does not start (error {})", library_.name(), failed);
  else
    started_ = true;
}

Nvml::~Nvml() {
  if (started_) nvml_.shutdown();
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return started_ && nvml_.driver(text, sizeof text - 1) == 0 ? text : "";
}

void Nvml::select(const std::string& pci) {
  if (started_ && nvml_.by_pci(pci.c_str(), &device_) != 0) device_ = nullptr;
}

nlohmann::json Nvml::describe() const {
  nlohmann::json described = nlohmann::json::object();
  if (!device_) return described;
  unsigned value = 0;
  if (nvml_.pcie_generation(device_, &value) == 0) described["pcie_generation"] = value;
  if (nvml_.pcie_width(device_, &value) == 0) described["pcie_width"] = value;
  if (nvml_.most_clock(device_, kNvmlClockMultiprocessor, &value) == 0) described["most_clock_mhz"] = value;
  if (nvml_.clock(device_, kNvmlClockMemory, &value) == 0) described["memory_clock_mhz"] = value;
  unsigned links = 0, version = 0;
  int active = 0;
  for (unsigned link = 0; link < kNvmlMostLinks; ++link)
    if (nvml_.link_state(device_, link, &active) == 0 && active == 1) {
      ++links;
      nvml_.link_version(device_, link, &version);
    }
  described["nvlinks"] = links;
  if (const auto text = nvlink_version(version); links > 0 && !text.empty()) described["nvlink_version"] = text;
  return described;
}

Conditions Nvml::conditions() const {
  Conditions now;
  if (!device_) return now;
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (nvml_.clock(device_, kNvmlClockMultiprocessor, &value) == 0) now.clock_mhz = value;
  if (nvml_.temperature(device_, kNvmlSensorGpu, &value) == 0) now.temperature_c = value;
  if (nvml_.power(device_, &value) == 0) now.power_w = value / 1000.0;
  if (nvml_.reasons(device_, &reasons) == 0) now.throttled = reasons_text(reasons);
  return now;
}

}  // namespace turnpoint::probe::cuda
