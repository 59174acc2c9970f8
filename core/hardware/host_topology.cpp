// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/host_topology.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace turnpoint {

namespace {

constexpr int kMostGpus = 1024, kMostLinks = 1024;
constexpr std::size_t kMostNodes = 4096, kMostNotes = 1000;

constexpr struct {
  const char *cell, *meaning;
} kOverPcie[] = {{"PSB", "over the PCIe switch of the board that both are on"},
                 {"PIX", "over one PCIe switch"},
                 {"PXB", "over several PCIe switches, no host bridge"},
                 {"PHB", "over a PCIe host bridge, usually the CPU"},
                 {"NODE", "over the host bridges inside one NUMA node"},
                 {"SYS", "over the link between NUMA nodes or sockets"}};

const GpuPair* pair_of(const HostTopology& topology, int row, int column) {
  const auto [first, second] = std::minmax(row, column);
  for (const auto& pair : topology.pairs)
    if (pair.first == first && pair.second == second) return &pair;
  return nullptr;
}

std::string count(int number, const char* what) { return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s"); }

std::string cell_of(const GpuPair& pair) {
  if (pair.nvlinks > 0) return fmt::format("NV{}", pair.nvlinks);
  if (pair.switch_links > 0) return "NVS";
  return pair.pcie.empty() ? "?" : pair.pcie;
}

/// Columns as wide as their widest cell, two blanks between them.
std::string aligned(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i >= widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], widths[i] + 2);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace

std::string topology_cell(const HostTopology& topology, int row, int column) {
  if (row == column) return "X";
  const GpuPair* pair = pair_of(topology, row, column);
  return pair ? cell_of(*pair) : "?";
}

std::string cell_meaning(const std::string& cell) {
  if (cell == "X") return "the GPU itself";
  if (cell == "NVS") return "NVLinks of both end in NVSwitches";
  if (cell == "?") return "the driver does not tell";
  for (const auto& known : kOverPcie)
    if (cell == known.cell) return known.meaning;
  if (cell.starts_with("NV"))
    return fmt::format("{} straight from one GPU to the other", count(std::atoi(cell.c_str() + 2), "NVLink"));
  return {};
}

std::string nvlinks_text(const HostGpu& gpu) {
  if (gpu.nvlinks == 0) return "none";
  std::string text = fmt::format("{}", gpu.nvlinks);
  if (!gpu.nvlink_version.empty()) text += " of version " + gpu.nvlink_version;
  if (gpu.nvlink_rate > 0) text += fmt::format(", {:.1f} GB/s each way", gpu.nvlinks * gpu.nvlink_rate / 1e9);
  return text;
}

std::string pair_text(const HostTopology& topology, int row, int column) {
  const std::string cell = topology_cell(topology, row, column);
  std::string text = fmt::format("{}: {}", cell, cell_meaning(cell));
  const GpuPair* pair = row == column ? nullptr : pair_of(topology, row, column);
  if (!pair) return text;
  const double rate = topology.gpus[static_cast<std::size_t>(row)].nvlink_rate;
  const int links = pair->nvlinks > 0 ? pair->nvlinks : pair->switch_links;
  if (pair->nvlinks == 0 && links > 0) text += fmt::format(" ({} each)", count(links, "NVLink"));
  if (links > 0 && !pair->nvlink_version.empty()) text += ", version " + pair->nvlink_version;
  if (links > 0 && rate > 0) text += fmt::format(", {:.1f} GB/s each way", links * rate / 1e9);
  if (links > 0 && !pair->pcie.empty()) text += fmt::format("; without them {}", cell_meaning(pair->pcie));
  if (!pair->read.empty() || !pair->write.empty())
    text += fmt::format("; peer-to-peer read: {}, write: {}", pair->read.empty() ? "not told" : pair->read,
                        pair->write.empty() ? "not told" : pair->write);
  return text;
}

std::string peer_text(const HostTopology& topology) {
  std::size_t told = 0;
  std::string refused;
  for (const auto& pair : topology.pairs) {
    if (pair.read.empty() && pair.write.empty()) continue;
    ++told;
    for (const auto& [what, status] : {std::pair("reads", pair.read), std::pair("writes", pair.write)})
      if (!status.empty() && status != "ok")
        refused += fmt::format("{}GPU{} and GPU{} ({}: {})", refused.empty() ? "" : ", ", pair.first, pair.second, what,
                               status);
  }
  if (told == 0) return {};
  const std::string of = told == topology.pairs.size()
                             ? std::string()
                             : fmt::format(" (told of {} of {} pairs)", told, topology.pairs.size());
  return refused.empty() ? fmt::format("peer-to-peer access between all pairs{}", of)
                         : fmt::format("no peer-to-peer access between {}{}", refused, of);
}

std::string cores_text(const HostTopology& topology) {
  std::vector<std::string> parts;
  if (topology.sockets > 0) parts.push_back(count(topology.sockets, "socket"));
  if (topology.cores > 0) parts.push_back(count(topology.cores, "usable core"));
  if (!topology.numa_nodes.empty()) {
    std::vector<std::string> lists;
    for (const auto& node : topology.numa_nodes) lists.push_back(node.cores.empty() ? "no cores" : node.cores);
    parts.push_back(fmt::format("{} ({})", count(static_cast<int>(topology.numa_nodes.size()), "NUMA node"),
                                fmt::join(lists, "; ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string topology_text(const HostTopology& topology) {
  std::string text;
  const int gpus = static_cast<int>(topology.gpus.size());
  std::set<std::string> cells;
  if (gpus > 0) {
    std::vector<std::vector<std::string>> rows(1, {""});
    for (int i = 0; i < gpus; ++i) rows[0].push_back(fmt::format("GPU{}", i));
    for (const char* head : {"NUMA node", "CPU cores", "NVLinks"}) rows[0].push_back(head);
    for (int i = 0; i < gpus; ++i) {
      const HostGpu& gpu = topology.gpus[static_cast<std::size_t>(i)];
      auto& row = rows.emplace_back(1, fmt::format("GPU{}", i));
      for (int k = 0; k < gpus; ++k) row.push_back(topology_cell(topology, i, k));
      cells.insert(row.begin() + 1, row.end());
      row.push_back(gpu.numa_nodes.empty() ? "?" : gpu.numa_nodes);
      row.push_back(gpu.cores.empty() ? "?" : gpu.cores);
      row.push_back(nvlinks_text(gpu));
    }
    text += aligned(rows);
    cells.erase("X");
    for (const auto& cell : cells) text += fmt::format("{}: {}\n", cell, cell_meaning(cell));
    if (const auto peers = peer_text(topology); !peers.empty()) text += peers + "\n";
  }
  if (const auto cores = cores_text(topology); !cores.empty()) text += cores + "\n";
  for (const auto& note : topology.notes) text += note + "\n";
  return text;
}

HostTopology read_topology(JsonFields fields) {
  HostTopology topology;
  fields.each("gpus", [&](JsonFields& item, std::size_t index) {
    if (index >= static_cast<std::size_t>(kMostGpus)) return item.fail("name", fmt::format("is beyond {}", kMostGpus));
    HostGpu gpu;
    gpu.name = item.text("name", "GPU");
    gpu.pci = item.text("pci", "");
    gpu.nvlinks = static_cast<int>(item.integer("nvlinks", 0, kMostLinks));
    gpu.switch_links = static_cast<int>(item.integer("switch_links", 0, kMostLinks, 0));
    gpu.nvlink_version = item.text("nvlink_version", "");
    gpu.nvlink_rate = item.number("nvlink_bytes_per_s", 0, 1e15, 0);
    gpu.numa_nodes = item.text("numa_nodes", "");
    gpu.cores = item.text("cores", "");
    if (!item.error() && gpu.switch_links > gpu.nvlinks) item.fail("switch_links", "are more than nvlinks");
    topology.gpus.push_back(std::move(gpu));
  });
  std::set<std::pair<int, int>> seen;
  const auto last = static_cast<std::int64_t>(topology.gpus.size()) - 1;
  fields.each("pairs", [&](JsonFields& item, std::size_t) {
    if (last < 1) return item.fail("first", "is none of several GPUs");
    GpuPair pair;
    pair.first = static_cast<int>(item.integer("first", 0, last - 1));
    pair.second = static_cast<int>(item.integer("second", 1, last));
    if (item.error()) return;
    if (pair.second <= pair.first) return item.fail("second", "must be above first");
    if (!seen.insert({pair.first, pair.second}).second) return item.fail("second", "this pair was given before");
    pair.nvlinks = static_cast<int>(item.integer("nvlinks", 0, kMostLinks, 0));
    pair.nvlink_version = item.text("nvlink_version", "");
    pair.switch_links = static_cast<int>(item.integer("switch_links", 0, kMostLinks, 0));
    pair.pcie = item.text("pcie", "");
    const bool known = pair.pcie.empty() || std::any_of(std::begin(kOverPcie), std::end(kOverPcie),
                                                        [&](const auto& way) { return pair.pcie == way.cell; });
    if (!known) item.fail("pcie", fmt::format("must be PSB, PIX, PXB, PHB, NODE or SYS, not '{}'", pair.pcie));
    pair.read = item.text("read", "");
    pair.write = item.text("write", "");
    topology.pairs.push_back(std::move(pair));
  });
  topology.sockets = static_cast<int>(fields.integer("sockets", 0, 1 << 20, 0));
  topology.cores = static_cast<int>(fields.integer("cores", 0, 1 << 24, 0));
  fields.each("numa_nodes", [&](JsonFields& item, std::size_t index) {
    if (index >= kMostNodes) return item.fail("cores", fmt::format("is beyond {} nodes", kMostNodes));
    topology.numa_nodes.push_back({item.text("cores", ""), item.text("distances", "")});
  });
  if (fields.has("notes")) {
    const nlohmann::json& notes = fields.json()["notes"];
    const bool good = notes.is_array() && notes.size() <= kMostNotes &&
                      std::all_of(notes.begin(), notes.end(), [](const auto& note) { return note.is_string(); });
    if (good)
      topology.notes = notes.get<std::vector<std::string>>();
    else
      fields.fail("notes", "must be a list of texts");
  }
  return topology;
}

nlohmann::json topology_json(const HostTopology& topology) {
  nlohmann::json root = nlohmann::json::object();
  const auto put = [](nlohmann::json& item, const char* key, const std::string& text) {
    if (!text.empty()) item[key] = text;
  };
  for (const auto& gpu : topology.gpus) {
    auto& item = root["gpus"].emplace_back(
        nlohmann::json{{"name", gpu.name}, {"nvlinks", gpu.nvlinks}, {"switch_links", gpu.switch_links}});
    put(item, "pci", gpu.pci);
    put(item, "nvlink_version", gpu.nvlink_version);
    if (gpu.nvlink_rate > 0) item["nvlink_bytes_per_s"] = gpu.nvlink_rate;
    put(item, "numa_nodes", gpu.numa_nodes);
    put(item, "cores", gpu.cores);
  }
  for (const auto& pair : topology.pairs) {
    auto& item = root["pairs"].emplace_back(nlohmann::json{{"first", pair.first},
                                                           {"second", pair.second},
                                                           {"nvlinks", pair.nvlinks},
                                                           {"switch_links", pair.switch_links}});
    put(item, "nvlink_version", pair.nvlink_version);
    put(item, "pcie", pair.pcie);
    put(item, "read", pair.read);
    put(item, "write", pair.write);
  }
  if (topology.sockets > 0) root["sockets"] = topology.sockets;
  if (topology.cores > 0) root["cores"] = topology.cores;
  for (const auto& node : topology.numa_nodes) {
    auto& item = root["numa_nodes"].emplace_back(nlohmann::json::object());
    put(item, "cores", node.cores);
    put(item, "distances", node.distances);
  }
  if (!topology.notes.empty()) root["notes"] = topology.notes;
  return root;
}

}  // namespace turnpoint
