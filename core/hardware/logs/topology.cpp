// SPDX-License-Identifier: Apache-2.0
// What joins the devices of a node: the matrix of `nvidia-smi topo -m`, and NCCL's and RCCL's topology files.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/text.h"
#include "core/hardware/logs/log_text.h"
#include "core/hardware/logs/readers.h"
#include "core/hardware/logs/xml.h"

namespace turnpoint::logs {

namespace {

constexpr std::size_t kMaximumTopologyDevices = 1024;
constexpr int kMostWires = 18;  // NVLinks of the largest device; more in a row means that a switch shares them

/// "NV12" -> 12; 0 for what is no NVLink.
int wires(std::string_view link) {
  if (!link.starts_with("NV")) return 0;
  const auto count = parse_int(link.substr(2));
  return count && *count > 0 && *count <= 1000 ? static_cast<int>(*count) : 0;
}

/// NVLinks of one device. Directly wired devices share theirs between their peers; behind a switch every pair shows all
/// of them.
int wires_per_device(const std::vector<std::vector<std::string>>& links) {
  int most = 0;
  for (const auto& row : links) {
    int sum = 0, largest = 0;
    for (const auto& link : row) {
      sum += wires(link);
      largest = std::max(largest, wires(link));
    }
    most = std::max(most, sum > kMostWires ? largest : sum);
  }
  return most;
}

class SmiReader {
 public:
  explicit SmiReader(const std::string& path) : out_(LogKind::smi_topology, path) {}

  Expected<MeasuredLog> read(std::string_view text) {
    LineReader lines(text);
    for (Line line; lines.next(line);) {
      const auto cells = words(line.text);
      if (!line.left_out.empty()) out_.warn(line.number, line.left_out + ": left out");
      if (cells.empty()) continue;
      if (names_.empty()) {
        if (is_name(cells[0])) header(cells);
      } else if (is_device(cells[0])) {
        row(cells, line.number);
      } else if (cells[0].starts_with("NIC") && cells[0].ends_with(":") && cells.size() == 2) {
        nic_names_[std::string(cells[0].substr(0, cells[0].size() - 1))] = std::string(cells[1]);
      }
    }
    return finish();
  }

 private:
  static bool is_device(std::string_view word) { return word.starts_with("GPU") && all_digits(word.substr(3)); }
  static bool is_name(std::string_view word) {
    return is_device(word) || word.starts_with("NIC") || word.starts_with("mlx");
  }

  void header(const std::vector<std::string_view>& cells) {
    for (const auto cell : cells) {
      if (cell == "CPU" || cell == "NUMA" || (cell == "GPU")) break;
      if (names_.size() < kMaximumTopologyDevices) names_.emplace_back(cell);
      devices_ += is_device(cell);
    }
  }

  void row(const std::vector<std::string_view>& cells, int line) {
    if (cells.size() < 1 + names_.size())
      return out_.warn(line, fmt::format("broken row: {} of {} links", cells.size() - 1, names_.size()));
    const std::size_t index = links_.size();
    if (index >= names_.size() || cells[0] != names_[index])
      return out_.warn(line, fmt::format("row '{}' is out of order", shown(cells[0])));
    std::vector<std::string> row;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!is_device(names_[i])) continue;
      const std::string link(cells[1 + i].substr(0, 16));
      const bool known = link == "X" || link == "SYS" || link == "NODE" || link == "PHB" || link == "PXB" ||
                         link == "PIX" || link == "PSB" || link == "SOC" || wires(link) > 0;
      if (!known) out_.warn(line, fmt::format("unknown link '{}'", shown(link)));
      if ((link == "X") != (row.size() == index)) out_.warn(line, fmt::format("'{}' stands where it must not", link));
      row.push_back(link);
    }
    links_.push_back(std::move(row));
    lines_.push_back(line);
  }

  Expected<MeasuredLog> finish() {
    if (devices_ > 0 && links_.size() != static_cast<std::size_t>(devices_))
      out_.warn(0, fmt::format("{} devices in the heading, but {} rows", devices_, links_.size()));
    const std::size_t count = std::min(links_.size(), static_cast<std::size_t>(devices_));
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < i; ++k)
        if (links_[i][k] != links_[k][i])
          out_.warn(lines_[i], fmt::format("link between GPU{} and GPU{} is {} one way and {} the other", k, i,
                                           links_[k][i], links_[i][k]));
    if (count == 0) return out_.finish();
    Topology topology;
    topology.devices = static_cast<int>(count);
    topology.links = std::move(links_);
    topology.nvlinks_per_device = wires_per_device(topology.links);
    for (const auto& name : names_)
      if (!is_device(name)) topology.nics.push_back(nic_names_.count(name) ? nic_names_[name] : name);
    out_.log().nodes = 1;
    out_.log().devices_per_node = topology.devices;
    out_.log().topology = std::move(topology);
    return out_.finish();
  }

  LogBuilder out_;
  std::vector<std::string> names_;
  int devices_ = 0;
  std::vector<std::vector<std::string>> links_;
  std::vector<int> lines_;
  std::map<std::string, std::string> nic_names_;
};

/// Products by PCI vendor and device number (the PCI ID repository), as far as presets know them.
std::string name_of(std::string_view vendor, std::string_view device) {
  constexpr std::tuple<std::string_view, std::string_view, const char*> kProducts[] = {
      {"0x10de", "0x15f9", "NVIDIA P100-SXM2-16GB"}, {"0x10de", "0x1db1", "NVIDIA V100-SXM2-16GB"},
      {"0x10de", "0x1db5", "NVIDIA V100-SXM2-32GB"}, {"0x10de", "0x20b0", "NVIDIA A100-SXM4-40GB"},
      {"0x10de", "0x20b2", "NVIDIA A100-SXM4-80GB"}, {"0x10de", "0x2330", "NVIDIA H100-SXM5-80GB"},
      {"0x10de", "0x2335", "NVIDIA H200"},           {"0x10de", "0x2901", "NVIDIA B200"},
      {"0x10de", "0x26b9", "NVIDIA L40S"},           {"0x10de", "0x2684", "NVIDIA GeForce RTX 4090"},
      {"0x1002", "0x74a1", "AMD Instinct MI300X"},   {"0x1002", "0x74a5", "AMD Instinct MI325X"}};
  for (const auto& [v, d, name] : kProducts)
    if (v == vendor && d == device) return name;
  return {};
}

/// NCCL's and RCCL's files: <cpu> and <pci> nest; devices are <pci> of a display or accelerator class, network cards of
/// the classes 0200 and 0207; <gpu> and <net> say more where a dump has them.
class XmlTopology {
 public:
  explicit XmlTopology(const std::string& path) : out_(LogKind::nccl_topology, path) {}

  Expected<MeasuredLog> read(const XmlElement& root) {
    if (root.name != "system")
      return bad_input(fmt::format("is XML, but its root is '{}', not NCCL's 'system'", shown(root.name)),
                       out_.log().path);
    for (const auto& child : root.children) visit(child);
    return finish();
  }

 private:
  struct Device {
    std::string bus;
    int line = 0;
    std::vector<std::pair<std::string, std::string>> links;  ///< bus of the peer, name
  };

  void visit(const XmlElement& element) {
    const std::string& kind = element.attribute("class");
    if (element.name == "pci") {
      if (kind.starts_with("0x03") || kind.starts_with("0x12")) {
        if (devices_.size() >= kMaximumTopologyDevices) {
          if (!full_)
            out_.warn(element.line, fmt::format("more than {} devices: the rest is left out", kMaximumTopologyDevices));
          full_ = true;
          return;
        }
        devices_.push_back({element.attribute("busid"), element.line, {}});
        if (out_.log().device_name.empty())
          out_.log().device_name = name_of(element.attribute("vendor"), element.attribute("device"));
        wire(element);
        for (const auto& child : element.children)
          if (child.name == "gpu") gpu(child);
        return;
      }
      if (kind.starts_with("0x0207") || kind.starts_with("0x0200")) {
        nics_.push_back(element.attribute("busid"));
        for (const auto& child : element.children) net(child);
        return;
      }
    }
    for (const auto& child : element.children) visit(child);
  }

  void gpu(const XmlElement& element) {
    for (const auto& link : element.children) {
      const bool nvlink = link.name == "nvlink";
      if (!nvlink && link.name != "xgmi") continue;
      const Number count = number(link.attribute("count"), 1, 1000);
      if (!count) {
        out_.warn(link.line, fmt::format("{} count {}", link.name, count.problem));
        continue;
      }
      const int links = static_cast<int>(count.value);
      devices_.back().links.emplace_back(link.attribute("target"), nvlink ? fmt::format("NV{}", links) : "xGMI");
      if (nvlink) nvlinks_ = std::max(nvlinks_, wires_of_last());
    }
  }

  int wires_of_last() const {
    int sum = 0;
    for (const auto& [target, name] : devices_.back().links) sum += wires(name);
    return std::min(sum, kMostWires);
  }

  void net(const XmlElement& element) {
    if (element.name == "net" && !element.attribute("speed").empty()) {
      const Number speed = number(element.attribute("speed"), 1, 1e9);  // Mbit/s
      if (speed)
        network_ += speed.value * 1e6 / 8;
      else
        out_.warn(element.line, "speed of a network card " + speed.problem);
    }
    for (const auto& child : element.children) net(child);
  }

  /// "16 GT/s", "32.0 GT/s PCIe" times the width; 128b/130b coding from 8 GT/s on, 8b/10b below.
  void wire(const XmlElement& element) {
    const std::string& text = element.attribute("link_speed");
    if (text.empty()) return;
    const auto cells = words(text);
    const Number rate = cells.empty() ? Number{0, "is empty"} : number(cells[0], 0.1, 1024);
    const Number width = number(element.attribute("link_width"), 1, 64);
    if (!rate || !width)
      return out_.warn(element.line, fmt::format("link of device {}: {}", shown(element.attribute("busid")),
                                                 rate ? width.problem : rate.problem));
    if (cells.size() < 2) out_.warn(element.line, "link_speed has no unit: GT/s assumed");
    const double coding = rate.value >= 8 ? 128.0 / 130 : 0.8;
    const double bytes_per_s = rate.value * 1e9 / 8 * coding * width.value;
    if (slowest_wire_ == 0 || bytes_per_s < slowest_wire_) {
      slowest_wire_ = bytes_per_s;
      wire_line_ = element.line;
    }
  }

  Expected<MeasuredLog> finish() {
    if (devices_.empty()) return bad_input("is an NCCL topology without devices", out_.log().path);
    Topology topology;
    topology.devices = static_cast<int>(devices_.size());
    topology.nics = nics_;
    topology.nvlinks_per_device = nvlinks_;
    bool linked = false;
    for (const auto& device : devices_) {
      std::vector<std::string> row;
      for (const auto& peer : devices_) {
        const auto link =
            std::find_if(device.links.begin(), device.links.end(), [&](const auto& l) { return l.first == peer.bus; });
        row.push_back(&peer == &device ? "X" : link == device.links.end() ? "" : link->second);
        linked |= link != device.links.end();
      }
      topology.links.push_back(std::move(row));
    }
    if (!linked)
      out_.note(devices_.front().line, "the file names no NVLink or xGMI: how the devices are joined is not known");
    out_.log().nodes = 1;
    out_.log().devices_per_node = topology.devices;
    out_.log().topology = std::move(topology);
    if (slowest_wire_ > 0) out_.figure(wire_line_, Figure::host_link_wire, slowest_wire_, "PCIe wire");
    if (network_ > 0) out_.figure(0, Figure::node_network, network_, "network cards");
    return out_.finish();
  }

  LogBuilder out_;
  std::vector<Device> devices_;
  std::vector<std::string> nics_;
  double network_ = 0, slowest_wire_ = 0;
  int wire_line_ = 0, nvlinks_ = 0;
  bool full_ = false;
};

}  // namespace

bool looks_like_smi_topology(std::string_view text) {
  LineReader lines(text);
  bool heading = false;
  for (Line line; lines.next(line) && line.number <= 200;) {
    const auto cells = words(line.text);
    if (cells.size() < 2 || !cells[0].starts_with("GPU") || !all_digits(cells[0].substr(3))) continue;
    const bool row = cells[1] == "X" || std::find(cells.begin() + 1, cells.end(), "X") != cells.end();
    if (heading && row) return true;
    heading |= !row;
  }
  return false;
}

Expected<MeasuredLog> read_smi_topology(std::string_view text, const std::string& path) {
  return SmiReader(path).read(text);
}

Expected<MeasuredLog> read_nccl_topology(std::string_view text, const std::string& path) {
  const auto root = parse_xml(text, path);
  if (!root) return root.error();
  return XmlTopology(path).read(*root);
}

}  // namespace turnpoint::logs
