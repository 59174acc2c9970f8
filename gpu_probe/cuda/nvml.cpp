// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cuda/nvml.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace turnpoint::probe::cuda {

namespace {

constexpr int kMultiprocessorClock = 1, kMemoryClock = 2, kGpuSensor = 0;
constexpr unsigned kMostLinks = 18;

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

Nvml::Nvml() {
  if (!library_.open({"libnvidia-ml.so.1"})) {
    problem_ = library_.problem();
    return;
  }
  library_.load(init_, "nvmlInit_v2") && library_.load(shutdown_, "nvmlShutdown") &&
      library_.load(driver_, "nvmlSystemGetDriverVersion") &&
      library_.load(by_pci_, "nvmlDeviceGetHandleByPciBusId_v2") && library_.load(clock_, "nvmlDeviceGetClockInfo") &&
      library_.load(most_clock_, "nvmlDeviceGetMaxClockInfo") &&
      library_.load(temperature_, "nvmlDeviceGetTemperature") && library_.load(power_, "nvmlDeviceGetPowerUsage") &&
      library_.load(reasons_, "nvmlDeviceGetCurrentClocksThrottleReasons") &&
      library_.load(pcie_generation_, "nvmlDeviceGetCurrPcieLinkGeneration") &&
      library_.load(pcie_width_, "nvmlDeviceGetCurrPcieLinkWidth") &&
      library_.load(link_state_, "nvmlDeviceGetNvLinkState") &&
      library_.load(link_version_, "nvmlDeviceGetNvLinkVersion");
  problem_ = library_.problem();
  if (!problem_.empty()) return;
  if (const int failed = init_(); failed != 0)
    problem_ = fmt::format("{} does not start (error {})", library_.name(), failed);
  else
    started_ = true;
}

Nvml::~Nvml() {
  if (started_) shutdown_();
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  return started_ && driver_(text, sizeof text - 1) == 0 ? text : "";
}

void Nvml::select(const std::string& pci) {
  if (started_ && by_pci_(pci.c_str(), &device_) != 0) device_ = nullptr;
}

nlohmann::json Nvml::describe() const {
  nlohmann::json described = nlohmann::json::object();
  if (!device_) return described;
  unsigned value = 0;
  if (pcie_generation_(device_, &value) == 0) described["pcie_generation"] = value;
  if (pcie_width_(device_, &value) == 0) described["pcie_width"] = value;
  if (most_clock_(device_, kMultiprocessorClock, &value) == 0) described["most_clock_mhz"] = value;
  if (clock_(device_, kMemoryClock, &value) == 0) described["memory_clock_mhz"] = value;
  unsigned links = 0, version = 0;
  for (unsigned link = 0; link < kMostLinks; ++link)
    if (link_state_(device_, link, &value) == 0 && value == 1) {
      ++links;
      link_version_(device_, link, &version);
    }
  described["nvlinks"] = links;
  if (links > 0) described["nvlink_version"] = version;
  return described;
}

Conditions Nvml::conditions() const {
  Conditions now;
  if (!device_) return now;
  unsigned value = 0;
  unsigned long long reasons = 0;
  if (clock_(device_, kMultiprocessorClock, &value) == 0) now.clock_mhz = value;
  if (temperature_(device_, kGpuSensor, &value) == 0) now.temperature_c = value;
  if (power_(device_, &value) == 0) now.power_w = value / 1000.0;
  if (reasons_(device_, &reasons) == 0) now.throttled = reasons_text(reasons);
  return now;
}

}  // namespace turnpoint::probe::cuda
