// SPDX-License-Identifier: Apache-2.0
// NVML of a made-up host, to be found as libnvidia-ml.so.1. Device i has the PCI address 7e57:0i:00.0, as the other
// emulated libraries say. TURNPOINT_EMULATED_NVML lists what the host is made of, items with commas between them:
//   gpus=8          devices of the host, those that CUDA does not show too; default 4
//   link=0-1x4      4 NVLinks between two devices; of the same device, links that are off
//   switch=0x6      6 NVLinks of a device that end in a switch; npu=0x2 in a CPU; hidden=0x2 in what is not told
//   path=0-1:10     their nearest common ancestor on PCIe; default 50
//   peer=0-1:1:5    status of one peer-to-peer capability; default 0
//   node=0:1        NUMA node; cores=0:f0f0 bits of its nearest cores, hexadecimal
//   version=5       of all links, by NVML's counting; speed=25781 MB/s
//   fail=nvmlDeviceGetP2PStatus:3     that function fails with error 3
// Compiled with EMULATED_NVML_OLD it is a library from before all functions that tell of pairs.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr unsigned kDomain = 0x7e57, kSwitchBus = 0xc0;
constexpr int kInvalid = 2, kNotFound = 6;

/// What stands behind one key of the description, item by item.
std::vector<std::string> told(const std::string& key) {
  const char* text = std::getenv("TURNPOINT_EMULATED_NVML");
  std::istringstream in(text ? text : "");
  std::vector<std::string> found;
  for (std::string item; std::getline(in, item, ',');)
    if (item.compare(0, key.size() + 1, key + "=") == 0) found.push_back(item.substr(key.size() + 1));
  return found;
}

int number(const char* key, int otherwise) {
  const auto found = told(key);
  return found.empty() ? otherwise : std::atoi(found.back().c_str());
}

int fails(const char* function) {
  for (const auto& item : told("fail"))
    if (const auto colon = item.find(':'); item.substr(0, colon) == function)
      return std::atoi(item.c_str() + colon + 1);
  return 0;
}

struct Device {
  int index = 0;
} devices[64];

struct Link {
  enum End { gpu = 0, npu = 1, network_switch = 2, hidden = 0xff } end = gpu;
  int to = 0;
  bool active = true;
};

std::vector<Link> links_of(const Device* device) {
  std::vector<Link> links;
  const auto add = [&](int count, Link link) { links.insert(links.end(), static_cast<std::size_t>(count), link); };
  for (const auto& item : told("link")) {
    int a = 0, b = 0, count = 0;
    if (std::sscanf(item.c_str(), "%d-%dx%d", &a, &b, &count) != 3) std::abort();
    if (device->index == a) add(count, {Link::gpu, b, a != b});
    if (device->index == b && a != b) add(count, {Link::gpu, a, true});
  }
  for (const auto& [key, end] :
       {std::pair("switch", Link::network_switch), {"npu", Link::npu}, {"hidden", Link::hidden}})
    for (const auto& item : told(key)) {
      int a = 0, count = 0;
      if (std::sscanf(item.c_str(), "%dx%d", &a, &count) != 2) std::abort();
      if (device->index == a) add(count, {end, 0, true});
    }
  return links;
}

const Link* link_of(const Device* device, unsigned link) {
  static thread_local std::vector<Link> links;
  links = links_of(device);
  return link < links.size() ? &links[link] : nullptr;
}

}  // namespace

extern "C" {
#define PASS \
  if (const int failed = fails(__func__); failed != 0) return failed

int nvmlInit_v2() {
  for (int i = 0; i < 64; ++i) devices[i].index = i;
  PASS;
  return 0;
}
int nvmlShutdown() { return 0; }
int nvmlSystemGetDriverVersion(char* text, unsigned size) { return std::snprintf(text, size, "580.65.06"), 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, Device** device) {
  PASS;
  unsigned domain = 0, bus = 0, number_there = 0;
  if (std::sscanf(pci, "%x:%x:%x", &domain, &bus, &number_there) != 3) return kInvalid;
  if (domain != kDomain || number_there != 0 || static_cast<int>(bus) >= number("gpus", 4)) return kNotFound;
  return *device = &devices[bus], 0;
}
int nvmlDeviceGetClockInfo(Device*, int, unsigned* value) { return *value = 1980, 0; }
int nvmlDeviceGetMaxClockInfo(Device*, int, unsigned* value) { return *value = 1980, 0; }
int nvmlDeviceGetTemperature(Device*, int, unsigned* value) { return *value = 41, 0; }
int nvmlDeviceGetPowerUsage(Device*, unsigned* value) { return *value = 120000, 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device*, unsigned long long* value) { return *value = 0, 0; }
int nvmlDeviceGetCurrPcieLinkGeneration(Device*, unsigned* value) { return *value = 5, 0; }
int nvmlDeviceGetCurrPcieLinkWidth(Device*, unsigned* value) { return *value = 16, 0; }
int nvmlDeviceGetNvLinkState(Device* device, unsigned link, int* active) {
  PASS;
  const Link* found = link_of(device, link);
  if (!found) return kInvalid;
  return *active = found->active ? 1 : 0, 0;
}
int nvmlDeviceGetNvLinkVersion(Device* device, unsigned link, unsigned* version) {
  PASS;
  const Link* found = link_of(device, link);
  if (!found) return kInvalid;
  return *version = found->active ? static_cast<unsigned>(number("version", 6)) : 0, 0;
}

#ifndef EMULATED_NVML_OLD
const char* nvmlErrorString(int error) { return error == 3 ? "Not Supported" : error == 15 ? "GPU is lost" : "Other"; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  PASS;
  return *count = static_cast<unsigned>(number("gpus", 4)), 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(Device* device, unsigned link, int* kind) {
  PASS;
  const Link* found = link_of(device, link);
  if (!found || !found->active) return kInvalid;
  return *kind = found->end, 0;
}
/// The address in the digits and the case that NVML writes.
int nvmlDeviceGetNvLinkRemotePciInfo_v2(Device* device, unsigned link, void* pci) {
  PASS;
  const Link* found = link_of(device, link);
  if (!found || !found->active) return kInvalid;
  if (found->end == Link::hidden) return 3;
  struct Info {
    char legacy[16];
    unsigned domain, bus, device, id, subsystem;
    char text[32];
  } info{};
  info.domain = kDomain;
  info.bus = found->end == Link::gpu ? static_cast<unsigned>(found->to) : kSwitchBus + link % 6;
  std::snprintf(info.text, sizeof info.text, "%08X:%02X:00.0", info.domain, info.bus);
  std::memcpy(pci, &info, sizeof info);
  return 0;
}
int nvmlDeviceGetTopologyCommonAncestor(Device* one, Device* other, int* level) {
  PASS;
  *level = 50;
  for (const auto& item : told("path")) {
    int a = 0, b = 0, value = 0;
    if (std::sscanf(item.c_str(), "%d-%d:%d", &a, &b, &value) != 3) std::abort();
    if ((one->index == a && other->index == b) || (one->index == b && other->index == a)) *level = value;
  }
  return 0;
}
/// What is told of a pair holds one way only, as written.
int nvmlDeviceGetP2PStatus(Device* one, Device* other, int capability, int* status) {
  PASS;
  *status = 0;
  for (const auto& item : told("peer")) {
    int a = 0, b = 0, which = 0, value = 0;
    if (std::sscanf(item.c_str(), "%d-%d:%d:%d", &a, &b, &which, &value) != 4) std::abort();
    if (one->index == a && other->index == b && capability == which) *status = value;
  }
  return 0;
}
int nvmlDeviceGetMemoryAffinity(Device* device, unsigned words, unsigned long* nodes, unsigned scope) {
  PASS;
  if (words == 0 || scope != 0) return kInvalid;
  std::memset(nodes, 0, words * sizeof *nodes);
  for (const auto& item : told("node")) {
    int a = 0, node = 0;
    if (std::sscanf(item.c_str(), "%d:%d", &a, &node) != 2) std::abort();
    if (device->index == a) nodes[node / 64] |= 1ul << node % 64;
  }
  return 0;
}
int nvmlDeviceGetCpuAffinity(Device* device, unsigned words, unsigned long* cores) {
  PASS;
  if (words == 0) return kInvalid;
  std::memset(cores, 0, words * sizeof *cores);
  for (const auto& item : told("cores")) {
    int a = 0;
    unsigned long bits = 0;
    if (std::sscanf(item.c_str(), "%d:%lx", &a, &bits) != 2) std::abort();
    if (device->index == a) cores[0] = bits;
  }
  return 0;
}
int nvmlDeviceGetFieldValues(Device*, int count, void* values) {
  PASS;
  struct Field {
    unsigned field, scope;
    long long timestamp, latency;
    int type, result;
    unsigned long long value;
  };
  for (int i = 0; i < count; ++i) {
    Field& field = static_cast<Field*>(values)[i];
    field.type = 1;
    field.result = field.field == 90 ? 0 : 3;
    // Only the first four bytes are the number's.
    field.value = 0xdeadbeef00000000ull | static_cast<unsigned>(number("speed", 26562));
  }
  return 0;
}
#endif
}
