// SPDX-License-Identifier: Apache-2.0
// Built-in clusters. Peaks are dense data-sheet figures; links are what collectives reach, not what the wire carries,
// because the ring formulas of cluster.h know no protocol overhead:
//  - inside a node, the large-message all-reduce bus bandwidth published for eight devices (V100: 120 GB/s, six rings
//  of
//    20 GB/s in NCCL's own model, a cloud vendor's acceptance test asks for 110; the data sheet's 150 is never reached.
//    With it the ring formula meets measured all-reduces of 16 MB and more within 2 %,
//    tests/hardware/measured_test.cpp). Smaller groups on a cube mesh reach less, two V100 about 42 GB/s: a measured
//    profile knows, a preset does not;
//  - between nodes, the sum of the node's network cards. V100: one 100 Gb/s EDR card as in the TensorOpt study. Its
//    "four cards" setting is the inter-node slider at x4.
//  - latency per ring step: 3.4 us is NCCL's NVLink hop (Simple protocol). 5 us between nodes is the mean over the
//    steps of a 2 x 8 ring, 28 NVLink hops and 2 network hops of 14 us, rounded up: the slowest link's latency is
//    charged for every step of a group that spans nodes.
// P100's and V100's 16-bit figures are fp16 and stand for bf16, which those devices do not have.
#include <fmt/format.h>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr std::int64_t kGiB = std::int64_t(1) << 30;

struct KnownDevice {
  const char* key;
  const char* name;
  std::int64_t memory_gib;
  double fp32_tflops, bf16_tflops, memory_gb_per_s;
  const char* link;
  double link_gb_per_s;
  const char* network;
  double network_gb_per_s;  ///< per node
  double host_link_gb_per_s;
};

constexpr KnownDevice kDevices[] = {
    {"p100-16gb", "P100-16GB", 16, 10.6, 21.2, 732, "NVLink 1", 72, "4 x InfiniBand EDR", 50, 9},
    {"v100-16gb", "V100-16GB", 16, 15.7, 125, 900, "NVLink 2", 120, "InfiniBand EDR", 12.5, 9},
    {"v100-32gb", "V100-32GB", 32, 15.7, 125, 900, "NVLink 2", 120, "InfiniBand EDR", 12.5, 9},
    {"a100-40gb", "A100-40GB", 40, 19.5, 312, 1555, "NVLink 3", 235, "8 x InfiniBand HDR", 200, 21},
    {"a100-80gb", "A100-80GB", 80, 19.5, 312, 2039, "NVLink 3", 235, "8 x InfiniBand HDR", 200, 21},
    {"h100-80gb", "H100-80GB", 80, 67, 989, 3350, "NVLink 4", 370, "8 x InfiniBand NDR", 400, 48},
    {"h200-141gb", "H200-141GB", 141, 67, 989, 4800, "NVLink 4", 370, "8 x InfiniBand NDR", 400, 48},
};
constexpr double kIntraLatency = 3.4e-6, kInterLatency = 5e-6;

ClusterPtr make(const KnownDevice& known, int nodes, int devices_per_node) {
  auto cluster = std::make_shared<Cluster>();
  cluster->name = known.key + shape_suffix(nodes, devices_per_node);
  cluster->title = cluster_title(nodes, devices_per_node, known.name);
  cluster->nodes = nodes;
  cluster->devices_per_node = devices_per_node;
  cluster->device.name = known.name;
  cluster->device.memory_bytes = known.memory_gib * kGiB;
  cluster->device.peak_fp32 = known.fp32_tflops * kTera;
  cluster->device.peak_bf16 = known.bf16_tflops * kTera;
  cluster->device.memory_bandwidth = known.memory_gb_per_s * kGiga;
  cluster->links[kIntraNode] = {known.link, known.link_gb_per_s * kGiga, kIntraLatency};
  cluster->links[kInterNode] = {known.network, known.network_gb_per_s * kGiga, kInterLatency};
  cluster->host_link_bandwidth = known.host_link_gb_per_s * kGiga;
  return cluster;
}

struct Shape {
  int nodes, devices_per_node;
};

/// The last "-NxM" of a name.
std::optional<Shape> parse_shape(std::string_view text) {
  const auto parts = split(text, 'x');
  if (parts.size() != 2 || parts[0].empty() || parts[1].empty()) return std::nullopt;
  const auto nodes = parse_int(parts[0]);
  const auto devices = parse_int(parts[1]);
  if (!nodes || !devices || *nodes < 1 || *devices < 1) return std::nullopt;
  if (*nodes > kMaximumNodes || *devices > kMaximumDevicesPerNode || *nodes * *devices > kMaximumDevices)
    return std::nullopt;
  return Shape{static_cast<int>(*nodes), static_cast<int>(*devices)};
}

Error unknown(const std::string& name, std::string what, const std::vector<std::string>& candidates) {
  Error error = usage_error(std::move(what));
  const std::string close = closest_match(name, candidates);
  error.hint = close.empty() ? "'turnpoint-cli hardware' lists the presets; a path to a hardware profile works too"
                             : "did you mean '" + close + "'?";
  return error;
}

}  // namespace

Expected<ClusterPtr> cluster_preset(const std::string& name) {
  std::vector<std::string> keys, names;
  for (const auto& device : kDevices) keys.push_back(device.key);
  for (const auto& info : preset_names()) names.push_back(info.name);
  const auto dash = name.rfind('-');
  const std::string key = name.substr(0, dash);
  const auto known = std::find(keys.begin(), keys.end(), key);
  const auto whole = std::find(keys.begin(), keys.end(), name);
  if (whole != keys.end()) {
    Error error = usage_error(fmt::format("hardware '{}' lacks the number of nodes and devices", name));
    error.hint = fmt::format("such as '{}-2x8' for 2 nodes of 8 devices", name);
    return error;
  }
  if (known == keys.end() || dash == std::string::npos) {
    std::string list;
    for (const auto& k : keys) list += (list.empty() ? "" : ", ") + k;
    return unknown(name, fmt::format("unknown hardware '{}'; known devices: {}", name, list), names);
  }
  const auto shape = parse_shape(std::string_view(name).substr(dash + 1));
  if (!shape)
    return unknown(
        name,
        fmt::format("hardware '{}': '{}' is not NODESxDEVICES with at most {} nodes, {} devices a node and {} in all",
                    name, name.substr(dash + 1), kMaximumNodes, kMaximumDevicesPerNode, kMaximumDevices),
        names);
  return make(kDevices[known - keys.begin()], shape->nodes, shape->devices_per_node);
}

const std::vector<PresetInfo>& preset_names() {
  static const std::vector<PresetInfo> infos = [] {
    std::vector<PresetInfo> list;
    for (const char* key : {"v100-16gb", "a100-80gb", "h100-80gb"}) {
      for (const Shape shape : {Shape{1, 2}, Shape{1, 4}, Shape{1, 8}, Shape{2, 8}, Shape{4, 8}}) {
        const auto known = std::find_if(std::begin(kDevices), std::end(kDevices),
                                        [&](const auto& d) { return std::string_view(d.key) == key; });
        const ClusterPtr cluster = make(*known, shape.nodes, shape.devices_per_node);
        std::string note = fmt::format("{} {:g} GB/s", known->link, known->link_gb_per_s);
        if (shape.nodes > 1) note += fmt::format(", {} {:g} GB/s a node", known->network, known->network_gb_per_s);
        if (shape.devices_per_node < 8) note += ", workstation";
        list.push_back({cluster->name, cluster->title, note});
      }
    }
    return list;
  }();
  return infos;
}

}  // namespace turnpoint
