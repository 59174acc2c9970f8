// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/base/text.h"
#include "core/hardware/cluster.h"

namespace turnpoint::cli {

namespace {

int list_hardware(bool json) {
  auto list = nlohmann::ordered_json::array();
  std::string text;
  for (const auto& preset : preset_names()) {
    const auto cluster = cluster_preset(preset.name);
    if (!cluster) return report(cluster.error());
    const DeviceType& device = (*cluster)->device;
    list.push_back({{"name", preset.name},
                    {"title", preset.title},
                    {"note", preset.note},
                    {"nodes", (*cluster)->nodes},
                    {"devices_per_node", (*cluster)->devices_per_node},
                    {"memory_bytes", device.memory_bytes},
                    {"peak_flop_per_s", {{"fp32", device.peak_fp32}, {"bf16", device.peak_bf16}}}});
    text += fmt::format("{:<16} {}, {} and {:g} TFLOP/s (fp32) a device, {}\n", preset.name, preset.title,
                        format_bytes(device.memory_bytes), device.peak_fp32 / 1e12, preset.note);
  }
  return write_output({}, json ? list.dump(1) + "\n" : text);
}

}  // namespace

void add_hardware_command(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("hardware", "List the built-in hardware; other shapes are DEVICE-NODESxDEVICES");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "Print JSON");
  sub->callback([&command, json] { command.run = [json] { return list_hardware(*json); }; });
}

}  // namespace turnpoint::cli
