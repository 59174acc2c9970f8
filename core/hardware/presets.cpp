// SPDX-License-Identifier: Apache-2.0
// Built-in clusters. Peaks are dense data-sheet figures (each table line names its source); links are what collectives
// reach, not what the wire carries, because the ring formulas of cluster.h know no protocol overhead:
//  - inside a node, the large-message all-reduce bus bandwidth published for eight devices (V100: 120 GB/s, six rings
//    of 20 GB/s in NCCL's own model, a cloud vendor's acceptance test asks for 110; the data sheet's 150 is never
//    reached). Smaller groups on a cube mesh reach less, two V100 about 40 GB/s: a measured profile knows that;
//  - between nodes, the sum of the node's network cards. V100: one 100 Gb/s EDR card as in the TensorOpt study. Its
//    "four cards" setting is the inter-node slider at x4.
//  - latency per ring step: 3.4 us is NCCL's NVLink hop (Simple protocol), 5.7 us its PCIe hop. 5 us between nodes is
//    the mean over the steps of a 2 x 8 ring, 28 NVLink hops and 2 network hops of 14 us, rounded up: the slowest
//    link's latency is charged for every step of a group that spans nodes.
// 16-bit figures are bf16 where the device has it; P100's and V100's are fp16 and stand for it. "fp32": vector units.
// Of its 16-bit peak a device reaches in its products: A100 0.72, and every product takes 10 us more to fill and drain
// it (fitted to Vidur's tables at one tensor-parallel degree in two; the other 1,944 products are met within 9 % in the
// mean). V100 0.6 (products of Aceso's tables) and 20 us (160 fp32 products of DeepBench); its training runs in mixed
// precision reach less. H100 0.55 and B200 0.49 are what whole runs reached; B200's are SimuMax's, which therefore do
// not judge it. For all others 0.6 and 10 us are estimates. truth_bench and runs_bench print what is off.
#include <fmt/format.h>
#include <algorithm>
#include <cctype>
#include <span>

#include "core/base/text.h"
#include "core/hardware/cluster.h"
#include "core/hardware/naming.h"

namespace turnpoint {

namespace {

constexpr double kTera = 1e12, kGiga = 1e9;
constexpr std::int64_t kGiB = std::int64_t(1) << 30;

struct Shape {
  int nodes, devices_per_node;
};

/// Pods of a shape, from the smallest up: nodes of one, and what part of a node's network leads out of it.
struct PodShape {
  int nodes;
  double part;
};

/// The shapes that people are shown of a device.
enum class Shapes : std::uint8_t { servers, racks, boards, cores_of_8, hosts_of_4, hosts_of_8, instances_of_16 };

std::span<const Shape> shapes_of(Shapes shapes) {
  static constexpr Shape kServers[] = {{1, 2}, {1, 4}, {1, 8}, {2, 8}, {4, 8}};
  static constexpr Shape kRacks[] = {{1, 36}, {1, 72}, {2, 72}};
  static constexpr Shape kBoards[] = {{1, 2}, {4, 2}, {16, 2}, {64, 2}};
  static constexpr Shape kCoresOf8[] = {{1, 8}, {4, 8}, {256, 8}};
  static constexpr Shape kHostsOf4[] = {{1, 4}, {4, 4}, {16, 4}};
  static constexpr Shape kHostsOf8[] = {{1, 8}, {2, 8}, {8, 8}};
  static constexpr Shape kInstances[] = {{1, 16}, {4, 16}};
  switch (shapes) {
    case Shapes::servers: return kServers;
    case Shapes::racks: return kRacks;
    case Shapes::boards: return kBoards;
    case Shapes::cores_of_8: return kCoresOf8;
    case Shapes::hosts_of_4: return kHostsOf4;
    case Shapes::hosts_of_8: return kHostsOf8;
    case Shapes::instances_of_16: return kInstances;
  }
  return kServers;
}

struct KnownDevice {
  const char* key;
  const char* name;
  std::int64_t memory_gib;
  double fp32_tflops, bf16_tflops, memory_gb_per_s;
  const char* link;
  double link_gb_per_s;
  const char* network;
  double network_gb_per_s;        ///< per node
  double host_link_gb_per_s;      ///< 0: not known
  double hop_s;                   ///< latency of one step inside a node
  double efficiency_16bit = 0.6;  ///< part of the 16-bit peak
  double pair_gb_per_s = 0;       ///< devices joined pair by pair: what one such link reaches; 0: a switch or a torus
  Shapes shapes = Shapes::servers;
  bool estimated = false;  ///< what collectives reach of the link inside a node: nobody published a measurement
  double product_launch_s = 10e-6;

  Library library() const {
    const std::string_view wires = link;
    if (wires.starts_with("NVLink") || wires.starts_with("PCIe")) return Library::nccl;
    if (wires == "xGMI") return Library::rccl;
    return wires == "ICI" ? Library::torus : Library::ring;
  }
  /// The third NVSwitch, that of NVLink 4, is the first that adds up.
  bool switch_reduces() const { return std::string_view(link) == "NVLink 4" || std::string_view(link) == "NVLink 5"; }
};

/// What 16-bit products reach of the peak where rows are no multiple of 16 bytes, so that the matrix units of the
/// generation cannot fetch them as they are built to.
struct UnalignedRows {
  std::string_view key;
  double odd, even;
};

// H100, measured by turnpoint-probe (cublasLt 13.1, products of 1024 to 20004 a side, resources/validation): 130 and
// 250 TFLOP/s, by the kernels of Turing's and of Ampere's matrix units. Products that were not among these judge it:
// those with the 50257 words of GPT-2 and the 30522 of BERT ran at 124 and 258 TFLOP/s in steps of PyTorch. An A100
// runs the same kernels on 108 of the H100's 132 multiprocessors, at 1410 of its 1755 MHz, a B200 on 148 at 1850 MHz:
// their figures are worked out so and were not measured. Nothing of older devices is known.
constexpr UnalignedRows kUnalignedRows[] = {{"a100", 0.27, 0.53}, {"h100", 0.13, 0.25},  {"h200", 0.13, 0.25},
                                            {"b200", 0.07, 0.13}, {"gb200", 0.06, 0.12}, {"gb300", 0.06, 0.12}};

constexpr double kNvlinkHop = 3.4e-6, kPcieHop = 5.7e-6, kInterLatency = 5e-6;

// Link figures that say "all-reduce" are measured bus bandwidths of eight devices, from the network notes of
// stas00/ml-engineering and the acceptance thresholds in Azure/azurehpc-health-checks; host links are those thresholds.
constexpr KnownDevice kDevices[] = {
    // NVIDIA P100 data sheet; link: 4 x 18 GB/s, NCCL's constant for NVLink 1; network of a DGX-1.
    {"p100-16gb", "P100-16GB", 16, 10.6, 21.2, 732, "NVLink 1", 72, "4 x InfiniBand EDR", 50, 9, kNvlinkHop, 0.8},
    // NVIDIA V100 data sheet; link: 6 x 20 GB/s, NCCL's constant for NVLink 2.
    {"v100-16gb", "V100-16GB", 16, 15.7, 125, 900, "NVLink 2", 120, "InfiniBand EDR", 12.5, 9, kNvlinkHop, 0.6, 0,
     Shapes::servers, false, 20e-6},
    {"v100-32gb", "V100-32GB", 32, 15.7, 125, 900, "NVLink 2", 120, "InfiniBand EDR", 12.5, 9, kNvlinkHop, 0.6, 0,
     Shapes::servers, false, 20e-6},
    // NVIDIA A100 data sheet; all-reduce 228 (threshold) to 235.
    {"a100-40gb", "A100-40GB", 40, 19.5, 312, 1555, "NVLink 3", 235, "8 x InfiniBand HDR", 200, 21, kNvlinkHop, 0.72},
    {"a100-80gb", "A100-80GB", 80, 19.5, 312, 2039, "NVLink 3", 235, "8 x InfiniBand HDR", 200, 21, kNvlinkHop, 0.72},
    // NVIDIA H100 and H200 data sheets; ring all-reduce 365 to 370. NVLS, up to 480, is for all-reduce alone.
    {"h100-80gb", "H100-80GB", 80, 67, 989, 3350, "NVLink 4", 370, "8 x InfiniBand NDR", 400, 48, kNvlinkHop, 0.55},
    {"h200-141gb", "H200-141GB", 141, 67, 989, 4800, "NVLink 4", 370, "8 x InfiniBand NDR", 400, 48, kNvlinkHop, 0.55},
    // NVIDIA HGX B200 data sheet (180 GB usable of 192; 7.7 TB/s is quoted too); ring all-reduce 682; PCIe 5 as H100.
    {"b200-180gb", "B200-180GB", 180, 80, 2250, 8000, "NVLink 5", 682, "8 x InfiniBand NDR", 400, 48, kNvlinkHop, 0.49},
    // NVIDIA GB200 NVL72 data sheet, a rack of 72 as one node: 13.4 TB and 576 TB/s of memory, dense bf16 180 PFLOP/s,
    // fp32 5760 TFLOP/s. NVLink 5 as B200, whose ring all-reduce stands for it; a 400 Gb/s card for each device. Host:
    // NVLink-C2C, 225 GB/s a device on the wire, of which GH200 reaches four fifths (nvbandwidth).
    {"gb200-186gb", "GB200-186GB", 186, 80, 2500, 8000, "NVLink 5", 682, "72 x InfiniBand NDR", 3600, 180, kNvlinkHop,
     0.49, 0, Shapes::racks, true},
    // NVIDIA GB300 NVL72 data sheet: 20 TB and 576 TB/s of memory, dense bf16 180 PFLOP/s; 800 Gb/s cards (ConnectX-8).
    {"gb300-279gb", "GB300-279GB", 279, 80, 2500, 8000, "NVLink 5", 682, "72 x InfiniBand XDR", 7200, 180, kNvlinkHop,
     0.49, 0, Shapes::racks, true},
    // NVIDIA L40S data sheet; no NVLink: 20 GB/s through the host is an estimate for PCIe 4 x16 (31 on the wire);
    // network: the least of the usual one to four cards.
    {"l40s-48gb", "L40S-48GB", 48, 91.6, 362, 864, "PCIe 4 x16", 20, "InfiniBand HDR", 25, 21, kPcieHop, 0.6, 0,
     Shapes::servers, true},
    // NVIDIA Ada whitepaper (165: with fp32 accumulation); peer-to-peer is switched off, so everything is copied
    // through the host: 10 GB/s is an estimate within the "few to 20" reported. Network: an estimate, 100 Gb/s
    // Ethernet.
    {"rtx4090-24gb", "RTX4090-24GB", 24, 82.6, 165, 1008, "PCIe 4 x16", 10, "100 Gb/s Ethernet", 12.5, 21, kPcieHop,
     0.6, 0, Shapes::servers, true},
    // AMD MI300X data sheet; all-reduce of eight 313. Joined pair by pair, 48 GB/s usable each of 64.
    {"mi300x-192gb", "MI300X-192GB", 192, 163, 1307, 5300, "xGMI", 313, "8 x InfiniBand NDR", 400, 48, kNvlinkHop, 0.6,
     48},
    // AMD MI325X data sheet: the MI300X's chip and links with more memory, so its all-reduce stands for this one's.
    {"mi325x-256gb", "MI325X-256GB", 256, 163.4, 1307, 6000, "xGMI", 313, "8 x InfiniBand NDR", 400, 48, kNvlinkHop,
     0.6, 48, Shapes::servers, true},
    // AMD MI355X data sheet; 76.8 GB/s a link on the wire where the MI300X has 64: its collectives scaled by that.
    {"mi355x-288gb", "MI355X-288GB", 288, 157.3, 2516, 8000, "xGMI", 375, "8 x InfiniBand NDR", 400, 48, kNvlinkHop,
     0.6, 57.6, Shapes::servers, true},
    // Intel Gaudi 3 (Hot Chips 2024): 128 GB, 3.67 TB/s, bf16 1835, vector units 28.7 in bf16 and half of it in fp32.
    // 21 of its 24 ports of 200 Gb/s lead to the seven others of a server, three to each: 525 GB/s each way (Habana's
    // page on network configuration), of which collectives reach an estimated 0.95. The other three ports leave it.
    {"gaudi3-128gb", "Gaudi3-128GB", 128, 14.3, 1835, 3670, "RoCE 200GbE", 500, "24 x 200 Gb/s Ethernet", 600, 48,
     kPcieHop, 0.6, 71.4, Shapes::servers, true},
    // AWS Neuron documentation, Trainium2: 96 GiB, 2.9 TB/s, bf16 667, fp32 181; 16 to an instance (trn2.48xlarge) in a
    // 4 x 4 torus, 1.28 TB/s of NeuronLink-v3 a device in both directions together: a ring along one axis has two of
    // the four links, 320 GB/s of wire. EFA 3.2 Tb/s an instance.
    {"trainium2-96gb", "Trainium2-96GB", 96, 181, 667, 2900, "NeuronLink 3", 320, "EFA", 400, 0, kNvlinkHop, 0.6, 0,
     Shapes::instances_of_16, true},
    // One device is a core, two to a chip, as XLA has them: half of a chip's 123 TFLOP/s, 32 GiB and 0.9 TB/s, sources
    // below. A node is a board of 2 x 2 chips. A ring of its eight cores passes each chip's two links inside the board,
    // 82 GB/s one way each, both ways round; one along an axis of the torus two links to either side.
    {"tpu-v3-core", "TPU-v3-core", 16, 2, 61.5, 450, "ICI", 164, "ICI torus", 328, 0, kNvlinkHop, 0.6, 0,
     Shapes::cores_of_8, true},
    // One device is a board of four chips, as in AccPar's study. Chips: 46 and 123 TFLOP/s, 16 and 32 GiB, 0.7 and 0.9
    // TB/s (Google Cloud TPU pages; Norrie et al., IEEE Micro 2021; boards are quoted with 180 and 420), vector fp32 3
    // and 4 TFLOP/s (Jouppi et al., CACM 2020). Links: 496 and 656 Gb/s each; a board's side towards the next in the
    // torus has two, which is what a ring uses. AccPar's own network constants could not be confirmed.
    {"tpu-v2", "TPU-v2-board", 64, 12, 180, 2800, "ICI", 124, "ICI torus", 124, 0, kNvlinkHop, 0.6, 0, Shapes::boards,
     true},
    {"tpu-v3", "TPU-v3-board", 128, 16, 420, 3600, "ICI", 164, "ICI torus", 164, 0, kNvlinkHop, 0.6, 0, Shapes::boards,
     true},
    // From v4 on one device is one chip, a node the host of four (2 x 2) or eight (2 x 4). Google Cloud TPU pages (v4,
    // v5e, v5p, v6e, TPU7x): memory, bandwidth, bf16; ICI in both directions together 400 GB/s (v5e), 1200 (v5p), 800
    // (v6e), 1200 (v7) over 4 or 6 ports; v4 has six of 50 GB/s each way (Jouppi et al., ISCA 2023). A ring along one
    // axis of the torus sends both ways round; a host's smaller side has two chips. One fp32 product is made of six in
    // bf16 (XLA's highest precision). Latencies of ICI are not published: NVLink's stand for them.
    {"tpu-v4", "TPU-v4", 32, 275.0 / 6, 275, 1200, "ICI", 100, "ICI torus", 200, 0, kNvlinkHop, 0.6, 0,
     Shapes::hosts_of_4, true},
    {"tpu-v5e", "TPU-v5e", 16, 197.0 / 6, 197, 819, "ICI", 100, "ICI torus", 200, 0, kNvlinkHop, 0.6, 0,
     Shapes::hosts_of_8, true},
    {"tpu-v5p", "TPU-v5p", 95, 459.0 / 6, 459, 2765, "ICI", 200, "ICI torus", 400, 0, kNvlinkHop, 0.6, 0,
     Shapes::hosts_of_4, true},
    {"tpu-v6e", "TPU-v6e", 32, 918.0 / 6, 918, 1638, "ICI", 200, "ICI torus", 400, 0, kNvlinkHop, 0.6, 0,
     Shapes::hosts_of_8, true},
    {"tpu-v7", "TPU-v7", 192, 2307.0 / 6, 2307, 7380, "ICI", 200, "ICI torus", 400, 0, kNvlinkHop, 0.6, 0,
     Shapes::hosts_of_4, true},
};

/// Dense 8-bit peaks of the same data sheets, TFLOP/s. All others have no 8-bit floating-point products.
constexpr struct {
  std::string_view key;
  double tflops;
} kEightBit[] = {{"h100-80gb", 1979},    {"h200-141gb", 1979},   {"b200-180gb", 4500},   {"gb200-186gb", 5000},
                 {"gb300-279gb", 5000},  {"l40s-48gb", 733},     {"rtx4090-24gb", 330},  {"mi300x-192gb", 2615},
                 {"mi325x-256gb", 2615}, {"mi355x-288gb", 5033}, {"gaudi3-128gb", 1835}, {"trainium2-96gb", 1299},
                 {"tpu-v7", 4614}};

double eight_bit_peak(const KnownDevice& known) {
  for (const auto& [key, tflops] : kEightBit)
    if (key == known.key) return tflops * kTera;
  return 0;
}

/// What is not a plan's to use. A CUDA context takes some 0.5 GiB (0.3 to 0.5 since kernels are loaded when called), a
/// communicator of NCCL on four A100 0.53 GiB with two members and 0.67 with more (NVIDIA/nccl#964), the first of RCCL
/// about 1 GiB (LUMI-AI-Guide#111). One communicator is counted: a plan that talks in more groups takes more. Nobody
/// published what others take.
std::int64_t reserve_of(const KnownDevice& known, int devices) {
  constexpr std::int64_t kContext = kGiB / 2;
  switch (known.library()) {
    case Library::nccl:
    case Library::nccl_2_18:
    case Library::nccl_2_12: return kContext + (devices > 2 ? 688 : devices > 1 ? 544 : 0) * (kGiB >> 10);
    case Library::rccl: return kContext + (devices > 1 ? kGiB : 0);
    case Library::torus:
    case Library::ring: break;
  }
  return 0;
}

/// Of devices that are joined pair by pair fewer reach less.
double link_bandwidth(const KnownDevice& known, int devices_per_node) {
  const double pairs = known.pair_gb_per_s * std::max(1, devices_per_node - 1);
  return kGiga * (pairs > 0 ? std::min(known.link_gb_per_s, pairs) : known.link_gb_per_s);
}

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
  cluster->device.peak_fp8 = eight_bit_peak(known);
  cluster->device.reserve_bytes = reserve_of(known, nodes * devices_per_node);
  cluster->device.flop_efficiency_16bit = known.efficiency_16bit;
  for (const UnalignedRows& rows : kUnalignedRows)
    if (std::string_view(known.key).starts_with(rows.key)) {
      cluster->device.flop_efficiency_odd = rows.odd;
      cluster->device.flop_efficiency_even = rows.even;
    }
  cluster->device.product_launch_s = known.product_launch_s;
  cluster->device.memory_bandwidth = known.memory_gb_per_s * kGiga;
  cluster->links[kIntraNode] = {known.link, link_bandwidth(known, devices_per_node), known.hop_s};
  cluster->links[kInterNode] = {known.network, known.network_gb_per_s * kGiga, kInterLatency};
  cluster->links[kIntraNode].switch_reduces = known.switch_reduces();
  cluster->library = known.library();
  cluster->overlap_slowdown = info_of(cluster->library).overlap_slowdown;
  cluster->host_link_bandwidth = known.host_link_gb_per_s * kGiga;
  return cluster;
}

constexpr double kLeastPodPart = 0.001;  // of a node's network; who writes less has mistyped

/// A hop between pods passes two switches and some tens of metres of fibre more, about a microsecond; an estimate.
constexpr double kPodHop = 1e-6;

ClusterPtr with_pods(const KnownDevice& known, const Shape& shape, const std::vector<PodShape>& pods) {
  auto cluster = std::make_shared<Cluster>(*make(known, shape.nodes, shape.devices_per_node));
  const LinkLevel network = cluster->links[kInterNode];
  for (std::size_t l = 0; l < pods.size(); ++l) {
    LinkLevel link = network;
    link.name = fmt::format("{} between pods", network.name);
    link.bandwidth *= pods[l].part;
    link.latency_s += static_cast<double>(l + 1) * kPodHop;
    cluster->pods.push_back({pods[l].nodes, std::move(link)});
  }
  set_nodes(*cluster, shape.nodes);
  cluster->name = known.key + shape_suffix(*cluster);
  cluster->title = cluster_title(*cluster);
  return cluster;
}

/// The last part of a name: "2x8", or with pods "4x32x8", after each '@' what part of the network leads out of them.
std::optional<Shape> parse_shape(std::string_view text, std::vector<PodShape>& pods) {
  const auto fields = split(text, '@');
  std::vector<std::int64_t> counts;
  for (const std::string_view field : split(fields[0], 'x')) {
    const auto count = field.empty() ? std::nullopt : parse_int(field);
    if (!count || *count < 1 || *count > kMaximumDevices) return std::nullopt;
    counts.push_back(*count);
  }
  const std::size_t levels = counts.size() < 2 ? 0 : counts.size() - 2;
  if (counts.size() < 2 || levels > kMaxPodLevels || (fields.size() > 1 && fields.size() - 1 != levels))
    return std::nullopt;
  const std::int64_t devices = counts.back();
  std::int64_t nodes = counts[levels];
  for (std::size_t l = levels; l-- > 0;) {
    const auto part = fields.size() > 1 ? parse_double(fields[l + 1]) : std::optional(1.0);
    if (!part || !(*part >= kLeastPodPart && *part <= 1)) return std::nullopt;
    if (nodes > kMaximumNodes) return std::nullopt;
    pods.push_back({static_cast<int>(nodes), *part});
    nodes *= counts[l];
  }
  if (nodes > kMaximumNodes || devices > kMaximumDevicesPerNode || nodes * devices > kMaximumDevices)
    return std::nullopt;
  return Shape{static_cast<int>(nodes), static_cast<int>(devices)};
}

/// Letters and digits in lower case.
std::string plain(std::string_view text) {
  std::string result;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)))
      result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
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
  auto known = std::find(keys.begin(), keys.end(), key);
  // "H200-1x8", "rtx-4090-1x2": the memory need not be named where there is one size only; case and dashes are free.
  if (known == keys.end() && !key.empty() && key.front() != '-' && key.back() != '-') {
    const auto same = [wanted = plain(key)](const std::string& k) {
      const bool sized = k.ends_with("gb");
      return plain(k) == wanted || (sized && plain(k.substr(0, k.rfind('-'))) == wanted);
    };
    if (std::count_if(keys.begin(), keys.end(), same) == 1) known = std::find_if(keys.begin(), keys.end(), same);
  }
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
  std::vector<PodShape> pods;
  const auto shape = parse_shape(std::string_view(name).substr(dash + 1), pods);
  if (!shape)
    return unknown(
        name,
        fmt::format("hardware '{}': '{}' is neither NODESxDEVICES nor PODSxNODESxDEVICES@PART, with 1 to {} nodes of 1 "
                    "to {} devices, {} in all, up to {} levels of pods and parts from {:g} to 1",
                    name, name.substr(dash + 1), kMaximumNodes, kMaximumDevicesPerNode, kMaximumDevices, kMaxPodLevels,
                    kLeastPodPart),
        names);
  const KnownDevice& device = kDevices[known - keys.begin()];
  return pods.empty() ? make(device, shape->nodes, shape->devices_per_node) : with_pods(device, *shape, pods);
}

std::optional<std::string> preset_of_shape(const std::string& name, int nodes, int devices_per_node) {
  if (!cluster_preset(name)) return std::nullopt;
  return name.substr(0, name.rfind('-')) + shape_suffix(nodes, devices_per_node);
}

std::string preset_key_of(std::string_view device_name) {
  const std::string text = plain(device_name);
  // Of two memories, the one named counts, else the first listed.
  for (const bool with_memory : {true, false})
    for (const auto& device : kDevices) {
      const std::string_view key = device.key;
      const bool sized = key.ends_with("gb");
      const std::string family = plain(sized ? key.substr(0, key.rfind('-')) : key);
      const auto at = text.find(family);
      // "GH200" and "GB200" are other products.
      if (at == std::string::npos || (at > 0 && text[at - 1] == 'g')) continue;
      if (!with_memory || (sized && text.find(key.substr(key.rfind('-') + 1)) != std::string::npos))
        return std::string(key);
    }
  return {};
}

const std::vector<PresetInfo>& preset_names() {
  static const std::vector<PresetInfo> infos = [] {
    std::vector<PresetInfo> list;
    const auto add = [&](const KnownDevice& known, const Shape& shape) {
      const ClusterPtr cluster = make(known, shape.nodes, shape.devices_per_node);
      std::string note = fmt::format("{} {:g} GB/s{}", known.link, cluster->links[kIntraNode].bandwidth / kGiga,
                                     known.estimated ? " (estimated)" : "");
      if (shape.nodes > 1) note += fmt::format(", {} {:g} GB/s a node", known.network, known.network_gb_per_s);
      if (shape.devices_per_node < 8 && shape.nodes == 1 && known.shapes == Shapes::servers) note += ", workstation";
      list.push_back({cluster->name, cluster->title, note});
    };
    for (const auto& known : kDevices)
      for (const Shape& shape : shapes_of(known.shapes)) add(known, shape);
    // AccPar's heterogeneous array: 128 boards of each.
    std::vector<ClusterPtr> boards;
    for (const auto& known : kDevices)
      if (known.shapes == Shapes::boards) boards.push_back(make(known, 64, 2));
    const ClusterPtr mixed = *join_clusters(boards);
    list.push_back({mixed->name, mixed->title, "mixed, the slower ICI counts"});
    return list;
  }();
  return infos;
}

}  // namespace turnpoint
