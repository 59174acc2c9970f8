// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "gpu_probe/cpu/blas.h"
#include "gpu_probe/cpu/cpu_backend.h"

namespace turnpoint::probe {

namespace {

std::string first_line(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with("model name"))
      if (const auto colon = line.find(": "); colon != std::string::npos) return line.substr(colon + 2);
  return "CPU";
}

nlohmann::json numa_nodes() {
  nlohmann::json nodes = nlohmann::json::array();
  std::error_code ec;
  for (int i = 0; i < 1024; ++i) {
    const std::filesystem::path folder = fmt::format("/sys/devices/system/node/node{}", i);
    if (!std::filesystem::is_directory(folder, ec)) break;
    nodes.push_back({{"cores", first_line(folder / "cpulist")}, {"distances", first_line(folder / "distance")}});
  }
  return nodes;
}

int sockets() {
  std::set<std::string> packages;
  for (int i = 0; i < 8192; ++i) {
    const auto package = first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/physical_package_id", i));
    if (!package.empty()) packages.insert(package);
  }
  return static_cast<int>(packages.size());
}

struct CoreCache {
  std::int64_t bytes = 0;
  std::string cores;  ///< that share it
};

std::vector<CoreCache> caches_of(int core) {
  std::vector<CoreCache> caches;
  for (int i = 0; i < 8; ++i) {
    const auto folder = fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}", core, i);
    const auto text = first_line(folder + "/size");
    std::int64_t kib = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), kib);
    if (error == std::errc() && kib > 0 && kib < (1 << 24) && std::string_view(end) == "K")
      caches.push_back({kib << 10, first_line(folder + "/shared_cpu_list")});
  }
  return caches;
}

}  // namespace

Caches usable_caches() {
  const Caches usual{std::int64_t(32) << 20, std::int64_t(1) << 20};
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return usual;
  std::map<std::string, std::int64_t> last;  // by the cores that share one
  Caches found;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable)) continue;
    std::vector<CoreCache> caches = caches_of(core);
    if (caches.empty()) continue;
    std::ranges::sort(caches, std::greater(), &CoreCache::bytes);
    last[caches.front().cores] = caches.front().bytes;
    if (caches.size() > 1) found.inner_bytes = std::max(found.inner_bytes, caches[1].bytes);
  }
  for (const auto& [cores, bytes] : last) found.last_bytes += bytes;
  return found.last_bytes > 0 ? found : usual;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

nlohmann::json describe_cpu(int ranks) {
  const int cores = usable_cores();
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  nlohmann::json described;
  described["devices"] = nlohmann::json::array();
  for (int rank = 0; rank < ranks; ++rank)
    described["devices"].push_back({{"index", rank},
                                    {"name", processor_name()},
                                    {"kind", "cpu"},
                                    {"memory_bytes", static_cast<std::int64_t>(memory / ranks)}});
  described["topology"] = {{"cores", cores}, {"numa_nodes", numa_nodes()}, {"memory_bytes", memory}};
  if (const int found = sockets(); found > 0) described["topology"]["sockets"] = found;
  nlohmann::json kernels = {{"name", blas().name}};
  if (!blas().version.empty()) kernels["version"] = blas().version;
  described["libraries"] = nlohmann::json::array({kernels});
  described["missing"] = blas().missing;
  if (ranks > cores)
    described["warnings"] = {
        fmt::format("{} ranks share {} cores: the times are not those of a machine with a core for "
                    "each",
                    ranks, cores)};
  return described;
}

}  // namespace turnpoint::probe
