// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/ranks/host_part.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/transport/mpi_links.h"

namespace turnpoint::probe {

using nlohmann::json;

json introduction(const Launch& launch) {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (int core = 0; core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &set)) cores.push_back(core);
  const json cpu = describe_cpu(1);
  json mpi = {{"missing", "not started by mpirun or srun"}};
  if (launch.carrier == Carrier::tcp) {
    mpi = {{"missing", "not asked for"}};
  } else if (!launch.launcher.empty()) {
    const auto module = load_mpi();
    mpi = module ? json{{"library", mpi_library(**module)}} : json{{"missing", module.error().what}};
  }
  return {{"mpi", std::move(mpi)},
          {"token", launch.token},
          {"protocol", kHostProtocol},
          {"version", program_version()},
          {"rank", launch.rank},
          {"size", launch.size},
          {"node", launch.node},
          {"cores", cores},
          {"name", cpu["devices"][0]["name"]},
          {"memory_bytes", cpu["devices"][0]["memory_bytes"]}};
}

HostPart::~HostPart() { crew_.kill(); }

Expected<json> HostPart::prepare(const json& order) {
  crew_.kill();
  doors_.clear();
  region_.reset();
  json answer = {{"ready", order.value("prepare", 0)}, {"ports", json::array()}};
  const bool local = !launch_.meeting.local_name.empty();
  const Endpoint anywhere{local ? "127.0.0.1" : launch_.meeting.host, 0, {}};
  for (int i = 0; i < order.value("count", 0); ++i) {
    auto door = listen_at(anywhere);
    if (!door) return door.error();
    answer["ports"].push_back(port_of(*door));
    doors_.push_back(std::move(*door));
  }
  if (const int places = order.value("makes_region", 0); places > 0) {
    auto region = SharedRegion::create(places);
    if (!region) return region.error();
    region_.emplace(std::move(*region));
    answer["region"] = fmt::format("/proc/{}/fd/{}", getpid(), region_->file());
  }
  return answer;
}

Expected<void> HostPart::start(const json& order) {
  const auto failed = [](std::string what, std::string hint = {}) {
    return Error{ErrorCode::device, std::move(what), {}, std::move(hint)};
  };
  const std::string path = order.value("region", "");
  Socket opened;
  if (!region_) {
    opened = Socket(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!opened)
      return failed(fmt::format("the memory of the other ranks on {} cannot be shared: {}: {}", launch_.node, path,
                                std::strerror(errno)),
                    "processes in different containers: give each its own --node NAME, and they will use TCP");
  }
  json peers = {{"token", launch_.token},
                {"run", order.value("start", 0)},
                {"carrier", order.value("carrier", "tcp")},
                {"peers", order.value("peers", json::array())}};
  for (auto& peer : peers["peers"])
    if (peer.value("address", "").empty()) peer["address"] = home_;
  const std::string text = peers.dump();
  peers_ = Socket(memfd_create("turnpoint-peers", MFD_CLOEXEC));
  if (!peers_ || ::write(peers_.file(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return failed(fmt::format("no memory for the list of ranks: {}", std::strerror(errno)));

  WorkerOptions options;
  options.ranks = order.value("ranks", 1);
  options.place = order.value("place", 0);
  options.places = order.value("places", 1);
  options.cores = order.value("cores", 0);
  options.start = order.value("from_item", std::size_t(0));
  options.deadline = host_clock() + order.value("left_s", 0.0);
  options.backend = order.value("backend", "cpu") == "cuda" ? ProbeBackend::cuda : ProbeBackend::cpu;
  options.exchange = order.value("exchange", true);
  options.peers_file = peers_.file();
  Share share;
  share.first = order.value("first", 0);
  share.count = order.value("count", 0);
  share.region_file = region_ ? region_->file() : opened.file();
  for (const auto& door : doors_) share.listen_files.push_back(door.file());
  return crew_.start(options, share);
}

}  // namespace turnpoint::probe
