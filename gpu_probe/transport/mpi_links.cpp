// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/mpi_links.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace turnpoint::probe {

namespace {

int members_of(const Group& group) { return static_cast<int>(group.size()); }
int place_in(const Group& group, int rank) {
  return static_cast<int>(std::find(group.begin(), group.end(), rank) - group.begin());
}

Expected<const MpiModule*> load() {
  const auto absent = [](std::string what) {
    return Error{
        ErrorCode::device, std::move(what), {}, "it is built where an MPI library is installed; TCP needs none"};
  };
  std::vector<std::filesystem::path> places;
  if (const char* told = std::getenv("TURNPOINT_PROBE_MPI")) {
    places = {told};
  } else {
    std::error_code ec;
    const auto folder = std::filesystem::read_symlink("/proc/self/exe", ec).parent_path();
    places = {folder / kMpiModuleFile, folder.parent_path() / "lib" / "turnpoint" / kMpiModuleFile};
  }
  std::error_code ec;
  const auto found = std::find_if(places.begin(), places.end(), [&](const auto& p) { return exists(p, ec); });
  if (found == places.end()) return absent(fmt::format("{} is not there", places.front().string()));
  // Global: an MPI library loads its own parts, which look for its symbols.
  void* handle = dlopen(found->c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!handle) return absent(dlerror());
  using Entry = const MpiModule* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kMpiModuleEntry));
  if (!entry || entry()->version != kMpiModuleVersion)
    return absent(fmt::format("{} is of another version of turnpoint-probe", found->string()));
  return entry();
}

}  // namespace

Expected<const MpiModule*> load_mpi() {
  static const Expected<const MpiModule*> loaded = load();
  return loaded;
}

std::string mpi_library(const MpiModule& module) {
  char text[200] = "";
  module.name_of_library(text, sizeof text);
  return text;
}

bool MpiCommunicator::barrier(const Group& group) { return module_.barrier(group.data(), members_of(group)) == 0; }

bool MpiCommunicator::all_reduce(const Group& group, float* data, std::int64_t count) {
  const auto members = static_cast<std::int64_t>(group.size()), me = std::int64_t(place_in(group, rank()));
  count_all_reduce(count, members, count * (me + 1) / members - count * me / members);
  return module_.all_reduce(group.data(), members_of(group), data, count) == 0;
}

bool MpiCommunicator::all_gather(const Group& group, const float* in, float* out, std::int64_t count) {
  count_gather(count, static_cast<std::int64_t>(group.size()));
  return module_.all_gather(group.data(), members_of(group), place_in(group, rank()), in, out, count) == 0;
}

bool MpiCommunicator::reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) {
  count_gather(count, static_cast<std::int64_t>(group.size()));
  return module_.reduce_scatter(group.data(), members_of(group), in, out, count) == 0;
}

bool MpiCommunicator::all_to_all(const Group& group, const float* in, float* out, std::int64_t count) {
  count_sent(count * static_cast<std::int64_t>(group.size() - 1));
  return module_.all_to_all(group.data(), members_of(group), in, out, count) == 0;
}

bool MpiCommunicator::broadcast(const Group& group, float* data, std::int64_t count, int root) {
  if (rank() == root) count_sent(count);
  return module_.broadcast(group.data(), members_of(group), data, count, place_in(group, root)) == 0;
}

bool MpiCommunicator::send_receive(int to, const float* in, int from, float* out, std::int64_t count) {
  if (to >= 0) count_sent(count);
  const int peers[] = {to, from};
  const void* outs[] = {in, nullptr};
  void* ins[] = {nullptr, out};
  const long bytes = static_cast<long>(count) * 4, out_bytes[] = {to >= 0 ? bytes : 0, 0},
             in_bytes[] = {0, from >= 0 ? bytes : 0};
  return module_.exchange(2, peers, outs, out_bytes, ins, in_bytes) == 0;
}

bool MpiTransport::exchange(std::span<const Part> parts) {
  std::vector<int> peers;
  std::vector<const void*> out;
  std::vector<void*> in;
  std::vector<long> out_bytes, in_bytes;
  for (const auto& part : parts) {
    peers.push_back(part.peer);
    out.push_back(part.out.data());
    out_bytes.push_back(static_cast<long>(part.out.size()));
    in.push_back(part.in.data());
    in_bytes.push_back(static_cast<long>(part.in.size()));
  }
  if (module_.exchange(static_cast<int>(parts.size()), peers.data(), out.data(), out_bytes.data(), in.data(),
                       in_bytes.data()) != 0)
    lost_ = true;
  return !lost_;
}

}  // namespace turnpoint::probe
