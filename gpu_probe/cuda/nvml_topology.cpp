// SPDX-License-Identifier: Apache-2.0
// What joins the GPUs of a host, as far as NVML tells it.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>

#include "gpu_probe/cuda/nvml.h"

namespace turnpoint::probe::cuda {

namespace {

using PciPlace = std::array<unsigned, 3>;  // domain, bus, device: texts of them differ in digits and case

constexpr unsigned kWords = 32;  // of a set of cores or nodes

std::string line_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

PciPlace place_of(const std::string& pci) {
  PciPlace place{~0u, ~0u, ~0u};
  if (std::sscanf(pci.c_str(), "%x:%x:%x", &place[0], &place[1], &place[2]) != 3) place.fill(~0u);
  return place;
}

/// "0-15,32-47" of the bits that are set.
std::string ranges(const unsigned long (&words)[kWords]) {
  constexpr unsigned kBits = 8 * sizeof(unsigned long);
  const auto has = [&](unsigned bit) { return bit < kWords * kBits && (words[bit / kBits] >> bit % kBits & 1) != 0; };
  std::string text;
  for (unsigned bit = 0; bit < kWords * kBits; ++bit) {
    if (!has(bit)) continue;
    unsigned last = bit;
    while (has(last + 1)) ++last;
    text += text.empty() ? "" : ",";
    text += last == bit ? fmt::format("{}", bit) : fmt::format("{}-{}", bit, last);
    bit = last;
  }
  return text;
}

const char* pcie_cell(int level) {
  switch (level) {
    case kNvmlInternal: return "PSB";
    case kNvmlSingle: return "PIX";
    case kNvmlMultiple: return "PXB";
    case kNvmlHostbridge: return "PHB";
    case kNvmlNode: return "NODE";
    case kNvmlSystem: return "SYS";
    default: return "";
  }
}

/// nvmlGpuP2PStatus_t
const char* peer_status(int status) {
  constexpr const char* kTexts[] = {"ok",
                                    "the chipset does not support it",
                                    "the GPU does not support it",
                                    "not between these host bridges",
                                    "disabled in the driver's settings",
                                    "not supported"};
  return status >= 0 && status < static_cast<int>(std::size(kTexts)) ? kTexts[status] : "";
}

/// Where the links of one GPU end.
struct LinkEnds {
  std::vector<int> gpus;  ///< how many at each GPU of the list
  int switches = 0, elsewhere = 0, untold = 0;
  unsigned version = 0;
};

class TopologyReader {
 public:
  TopologyReader(const NvmlFunctions& nvml, const std::string& library, std::vector<NvmlDevice> devices,
                 std::filesystem::path system, HostTopology& out)
      : nvml_(nvml), library_(library), devices_(std::move(devices)), system_(std::move(system)), out_(out) {
    for (const auto& gpu : out_.gpus) places_.push_back(place_of(gpu.pci));
  }

  void read() {
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      ends_.push_back(ends_of(i));
      describe(i);
    }
    for (std::size_t i = 0; i < devices_.size(); ++i)
      for (std::size_t k = i + 1; k < devices_.size(); ++k)
        if (GpuPair found = pair(i, k); found.nvlinks + found.switch_links > 0 || !found.pcie.empty() ||
                                        !found.read.empty() || !found.write.empty())
          out_.pairs.push_back(std::move(found));
    for (const auto& [topic, reason] : unknown_)
      out_.notes.push_back(fmt::format("{} is not known: {}", topic, reason));
    hidden();
  }

 private:
  /// Whether a call told something; the first reason of each topic is kept for a note.
  bool told(const char* topic, const char* function, bool there, int result) {
    if (there && result == 0) return true;
    const char* why = there && nvml_.error_text ? nvml_.error_text(result) : nullptr;
    unknown_.try_emplace(topic, !there ? fmt::format("{} has no function {}", library_, function)
                                : why  ? fmt::format("{}: {} (error {})", function, why, result)
                                       : fmt::format("{}: error {}", function, result));
    return false;
  }

  LinkEnds ends_of(std::size_t index) {
    LinkEnds ends;
    ends.gpus.resize(devices_.size());
    const NvmlDevice device = devices_[index];
    for (unsigned link = 0; device && link < kNvmlMostLinks; ++link) {
      int active = 0;
      if (nvml_.link_state(device, link, &active) != 0 || active != 1) continue;
      unsigned version = 0;
      if (told("the version of NVLinks", "nvmlDeviceGetNvLinkVersion", true,
               nvml_.link_version(device, link, &version)))
        ends.version = std::max(ends.version, version);
      count_end(device, link, ends);
    }
    return ends;
  }

  void count_end(NvmlDevice device, unsigned link, LinkEnds& ends) {
    constexpr const char* kTopic = "where NVLinks end";
    int kind = kNvmlEndUnknown;
    // Old libraries have no such function; the address of the end tells as much.
    if (!nvml_.link_end || nvml_.link_end(device, link, &kind) != 0) kind = kNvmlEndUnknown;
    if (kind == kNvmlEndSwitch) {
      ++ends.switches;
      return;
    }
    NvmlPci pci{};
    const bool there = nvml_.link_pci != nullptr;
    if (!told(kTopic, "nvmlDeviceGetNvLinkRemotePciInfo_v2", there, there ? nvml_.link_pci(device, link, &pci) : 0)) {
      ++ends.untold;
      return;
    }
    const auto found = std::find(places_.begin(), places_.end(), PciPlace{pci.domain, pci.bus, pci.device});
    if (found != places_.end())
      ++ends.gpus[static_cast<std::size_t>(found - places_.begin())];
    else if (kind == kNvmlEndUnknown && is_switch(pci))
      ++ends.switches;
    else
      ++(kind == kNvmlEndUnknown ? ends.untold : ends.elsewhere);
  }

  /// A PCI bridge that is none to another bus: class 0x0680.
  bool is_switch(const NvmlPci& pci) const {
    const auto address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
    return line_of(system_ / "bus/pci/devices" / address / "class").starts_with("0x0680");
  }

  void describe(std::size_t index) {
    HostGpu& gpu = out_.gpus[index];
    const LinkEnds& ends = ends_[index];
    const NvmlDevice device = devices_[index];
    gpu.switch_links = ends.switches;
    gpu.nvlinks = ends.switches + ends.elsewhere + ends.untold;
    for (const int links : ends.gpus) gpu.nvlinks += links;
    if (gpu.nvlinks > 0) {
      gpu.nvlink_version = nvlink_version(ends.version);
      if (gpu.nvlink_version.empty())
        unknown_.try_emplace("the version of NVLinks",
                             fmt::format("nvmlDeviceGetNvLinkVersion tells {}", ends.version));
      NvmlField field{};
      field.field = kNvmlFieldNvlinkSpeed;
      const bool there = nvml_.fields != nullptr;
      int result = there ? nvml_.fields(device, 1, &field) : 0;
      if (there && result == 0) result = field.result;
      constexpr const char* kTopic = "the rate of NVLinks";
      if (told(kTopic, "nvmlDeviceGetFieldValues", there, result)) {
        if (field.type == kNvmlUnsigned)
          gpu.nvlink_rate = 1e6 * static_cast<double>(static_cast<unsigned>(field.value));
        else
          unknown_.try_emplace(kTopic, fmt::format("nvmlDeviceGetFieldValues tells it as type {}", field.type));
      }
    }
    places(index);
  }

  /// Nearest memory and cores: NVML's word, else the kernel's.
  void places(std::size_t index) {
    HostGpu& gpu = out_.gpus[index];
    const NvmlDevice device = devices_[index];
    const auto folder = system_ / "bus/pci/devices" / gpu.pci;
    unsigned long nodes[kWords] = {}, cores[kWords] = {};
    if (device && nvml_.memory_affinity && nvml_.memory_affinity(device, kWords, nodes, kNvmlScopeNode) == 0)
      gpu.numa_nodes = ranges(nodes);
    if (gpu.numa_nodes.empty())
      // -1 where the firmware does not say.
      if (const auto node = line_of(folder / "numa_node"); !node.empty() && node[0] != '-') gpu.numa_nodes = node;
    if (device && nvml_.core_affinity && nvml_.core_affinity(device, kWords, cores) == 0) gpu.cores = ranges(cores);
    if (gpu.cores.empty()) gpu.cores = line_of(folder / "local_cpulist");
    const auto silent = [&](const char* topic, const char* function) {
      unknown_.try_emplace(topic, fmt::format("neither {} nor {} tells", function, folder.string()));
    };
    if (gpu.numa_nodes.empty()) silent("which NUMA node is near a GPU", "nvmlDeviceGetMemoryAffinity");
    if (gpu.cores.empty()) silent("which CPU cores are near a GPU", "nvmlDeviceGetCpuAffinity");
  }

  GpuPair pair(std::size_t i, std::size_t k) {
    GpuPair pair;
    pair.first = static_cast<int>(i);
    pair.second = static_cast<int>(k);
    const LinkEnds &a = ends_[i], &b = ends_[k];
    // A link has two ends; where only one of them is told, that one tells of both.
    pair.nvlinks = std::max(a.gpus[k], b.gpus[i]);
    if (a.gpus[k] != b.gpus[i] && a.untold + b.untold == 0)
      out_.notes.push_back(
          fmt::format("GPU{} tells of {} NVLinks to GPU{}, which tells of {} back", i, a.gpus[k], k, b.gpus[i]));
    if (!devices_[i] || !devices_[k]) return pair;
    // All switches of a host are joined with each other.
    pair.switch_links = std::min(a.switches, b.switches);
    if (pair.nvlinks + pair.switch_links == 0 && a.untold > 0 && b.untold > 0 && peers(i, k, kNvmlPeerNvlink) == "ok") {
      // In virtual machines a switch may be invisible.
      pair.switch_links = std::min(a.untold, b.untold);
      assumed_switch_ = true;
    }
    if (pair.nvlinks + pair.switch_links > 0) pair.nvlink_version = nvlink_version(std::min(a.version, b.version));
    int level = -1;
    const bool there = nvml_.ancestor != nullptr;
    if (told("how pairs of GPUs lie on PCIe", "nvmlDeviceGetTopologyCommonAncestor", there,
             there ? nvml_.ancestor(devices_[i], devices_[k], &level) : 0))
      pair.pcie = pcie_cell(level);
    pair.read = peers(i, k, kNvmlPeerRead);
    pair.write = peers(i, k, kNvmlPeerWrite);
    return pair;
  }

  /// The worse of both directions.
  std::string peers(std::size_t i, std::size_t k, int capability) {
    std::string worst;
    for (const auto& [from, to] : {std::pair(i, k), std::pair(k, i)}) {
      int status = -1;
      const bool there = nvml_.peer != nullptr;
      if (!told("peer-to-peer access between GPUs", "nvmlDeviceGetP2PStatus", there,
                there ? nvml_.peer(devices_[from], devices_[to], capability, &status) : 0))
        return {};
      if (worst.empty() || worst == "ok") worst = peer_status(status);
    }
    return worst;
  }

  void hidden() {
    if (assumed_switch_)
      out_.notes.push_back("pairs whose peer-to-peer access goes over such NVLinks are taken to be joined by switches");
    for (std::size_t i = 0; i < ends_.size(); ++i)
      if (ends_[i].elsewhere > 0)
        out_.notes.push_back(fmt::format("{} of the NVLinks of GPU{} end at none of these GPUs and at no switch",
                                         ends_[i].elsewhere, i));
    unsigned all = 0;
    if (nvml_.device_count && nvml_.device_count(&all) == 0 && all > devices_.size())
      out_.notes.push_back(fmt::format("the host has {} GPUs; the driver shows {} of them here (CUDA_VISIBLE_DEVICES?)",
                                       all, devices_.size()));
  }

  const NvmlFunctions& nvml_;
  const std::string& library_;
  std::vector<NvmlDevice> devices_;  ///< null where NVML does not know the GPU
  std::filesystem::path system_;
  HostTopology& out_;
  std::vector<PciPlace> places_;
  std::vector<LinkEnds> ends_;
  bool assumed_switch_ = false;
  std::map<std::string, std::string> unknown_;  ///< topic to reason
};

}  // namespace

HostTopology Nvml::topology(std::vector<HostGpu> gpus, const std::filesystem::path& system) const {
  HostTopology topology;
  topology.gpus = std::move(gpus);
  std::vector<NvmlDevice> devices(topology.gpus.size());
  if (!started_) topology.notes.push_back("what joins the GPUs is not known: " + problem_);
  for (std::size_t i = 0; started_ && i < devices.size(); ++i)
    if (const int failed = nvml_.by_pci(topology.gpus[i].pci.c_str(), &devices[i]); failed != 0) {
      devices[i] = nullptr;
      topology.notes.push_back(
          fmt::format("what joins GPU{} to others is not known: NVML does not know a device at {} (error {})", i,
                      topology.gpus[i].pci, failed));
    }
  TopologyReader(nvml_, library_.name(), std::move(devices), system, topology).read();
  return topology;
}

}  // namespace turnpoint::probe::cuda
