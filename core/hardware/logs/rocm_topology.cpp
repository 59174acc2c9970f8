// SPDX-License-Identifier: Apache-2.0
// rocm-smi --showtopo: of its matrices the one of link types tells how the devices of a node are joined.
#include <fmt/format.h>

#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"

namespace turnpoint::logs {

namespace {

constexpr std::size_t kMostRocmDevices = 1024;

bool is_rocm_device(std::string_view word) { return word.starts_with("GPU") && all_digits(word.substr(3)); }

}  // namespace

bool is_rocm_topology_line(std::string_view line) {
  return line.find("Link Type between two GPUs") != std::string_view::npos;
}

Expected<MeasuredLog> read_rocm_topology(LineReader& lines, const std::string& path) {
  LogBuilder out(LogKind::rocm_topology, path);
  Topology topology;
  bool inside = false;
  std::size_t columns = 0;
  for (Line line; lines.next(line);) {
    const std::string_view content = without_prefixes(line.text);
    if (is_rocm_topology_line(content)) {
      inside = true;
      continue;
    }
    if (content.starts_with("=")) inside = false;
    const auto cells = words(content);
    if (!inside || cells.empty() || !is_rocm_device(cells[0])) continue;
    if (cells.size() == 1 || is_rocm_device(cells[1])) {  // the heading
      columns = std::min(cells.size(), kMostRocmDevices);
      continue;
    }
    if (cells.size() != columns + 1) {
      out.warn(line.number, fmt::format("broken row: {} links of {} devices", cells.size() - 1, columns));
      continue;
    }
    if (topology.links.size() >= columns) continue;
    std::vector<std::string> row;
    for (std::size_t i = 0; i < columns; ++i) {
      const std::string_view link = cells[i + 1];
      row.emplace_back(i == topology.links.size() ? "X" : link == "XGMI" ? "xGMI" : link.substr(0, 16));
      if (i != topology.links.size() && link != "XGMI" && link != "PCIE")
        out.warn(line.number, fmt::format("unknown link '{}'", shown(link)));
    }
    topology.links.push_back(std::move(row));
  }
  if (const auto error = lines.error()) return *error;
  if (topology.links.size() != columns)
    return bad_input(fmt::format("a rocm-smi topology of {} devices with {} rows", columns, topology.links.size()),
                     path);
  if (columns == 0) return bad_input("a rocm-smi topology without devices", path);
  topology.devices = static_cast<int>(columns);
  out.log().nodes = 1;
  out.log().devices_per_node = topology.devices;
  out.log().topology = std::move(topology);
  return out.finish();
}

}  // namespace turnpoint::logs
