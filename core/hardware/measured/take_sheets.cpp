// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/measured/take_sheets.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/hardware/logs/log_text.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

/// What a data sheet says of one device; 0 where it says nothing.
struct Sheet {
  double memory_bytes = 0, memory_bandwidth = 0, peak_bf16 = 0, peak_fp32 = 0;
};

Sheet sheet_of(const MeasuredLog& log) {
  Sheet sheet{log.memory_bytes, 0, 0, 0};
  for (const auto& figure : log.figures) {
    if (figure.figure == Figure::device_memory) sheet.memory_bandwidth = figure.value;
    if (figure.figure == Figure::peak_16bit) sheet.peak_bf16 = figure.value;
    if (figure.figure == Figure::peak_32bit) sheet.peak_fp32 = figure.value;
  }
  return sheet;
}

bool same_device(const std::string& named, const DeviceType& device) {
  const std::string key = preset_key_of(named);
  return !named.empty() && (named == device.name || (!key.empty() && key == preset_key_of(device.name)));
}

/// "peak_fp32_TFLOPS" and what else a whole device needs and the sheet lacks.
std::string lacks(const Sheet& sheet) {
  std::string list;
  for (const auto& [value, key] :
       {std::pair(sheet.memory_bytes, "mem_per_GPU_in_GB"),
        std::pair(sheet.memory_bandwidth, "hbm_bandwidth_in_GB_per_sec"),
        std::pair(sheet.peak_bf16, "peak_fp16_TFLOPS"), std::pair(sheet.peak_fp32, "peak_fp32_TFLOPS")})
    if (value < 1) list += (list.empty() ? "" : ", ") + std::string(key);
  return list;
}

/// "v100-sxm-16gb" with 32 GB: such sheets are copied from one another.
bool contradicts_itself(const MeasuredLog& log) {
  const auto named = logs::number_before(logs::lower(log.device_name), "gb");
  return named && log.memory_bytes > 0 && log.memory_bytes != *named * static_cast<double>(std::int64_t(1) << 30);
}

void take(const Sheet& sheet, DeviceType& device) {
  if (sheet.memory_bytes >= 1) device.memory_bytes = static_cast<std::int64_t>(sheet.memory_bytes);
  if (sheet.memory_bandwidth >= 1) device.memory_bandwidth = sheet.memory_bandwidth;
  if (sheet.peak_bf16 >= 1) device.peak_bf16 = sheet.peak_bf16;
  if (sheet.peak_fp32 >= 1) device.peak_fp32 = sheet.peak_fp32;
}

/// The device of the sheet in place of the base's; only links and shape stay.
void replace(const MeasuredLog& log, const Sheet& sheet, Cluster& cluster) {
  DeviceType device;
  device.name = log.device_name.empty() ? "device of " + logs::file_name(log.path) : log.device_name;
  take(sheet, device);
  cluster.device = device;
  std::string name;
  for (const char c : device.name) name += std::isalnum(static_cast<unsigned char>(c)) || c == '.' ? c : '-';
  cluster.name = logs::lower(name) + shape_suffix(cluster);
  cluster.title = cluster_title(cluster);
  // What was measured or fitted for the base's device is not this device's.
  forget_operator_times(cluster);
}

}  // namespace

void take_sheets(const std::vector<MeasuredLog>& logs, Cluster& cluster, std::vector<std::string>& notes) {
  for (const auto& log : logs) {
    if (log.kind != LogKind::gpu_specs) continue;
    const std::string file = logs::file_name(log.path);
    const std::string whose = log.device_name.empty() ? "a device that it does not name" : "'" + log.device_name + "'";
    const Sheet sheet = sheet_of(log);
    if (contradicts_itself(log)) {
      notes.push_back(fmt::format("{}: the memory contradicts the name {}: the sheet is not taken", file, whose));
    } else if (cluster.mixed()) {
      notes.push_back(fmt::format("{}: the devices of the profile differ: the sheet is not taken", file));
    } else if (same_device(log.device_name, cluster.device)) {
      take(sheet, cluster.device);
      notes.push_back(fmt::format(
          "{}: memory, peaks and memory bandwidth taken; its links are wire rates, so the profile's stay", file));
    } else if (const std::string missing = lacks(sheet); !missing.empty()) {
      notes.push_back(
          fmt::format("{}: describes {}, the profile is for {}, and the sheet lacks {}: it is not taken, "
                      "because half of it would make a device that nobody sells",
                      file, whose, cluster.device.name, missing));
    } else {
      notes.push_back(fmt::format("{}: {} in place of {}; only shape and links stay the profile's", file, whose,
                                  cluster.device.name));
      replace(log, sheet, cluster);
      cluster.notes.push_back(notes.back());
    }
  }
}

}  // namespace turnpoint
