// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/transport/rank_links.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "gpu_probe/transport/host_collectives.h"

namespace turnpoint::probe {

namespace {

constexpr double kConnecting = 30;  // s for all ranks to call each other

struct PeerList {
  std::vector<Peer> peers;
  std::string token, carrier;
  int run = 0;
};

Expected<PeerList> read_peers(int file, int ranks) {
  const auto document = read_json_file(fmt::format("/proc/self/fd/{}", file));
  if (!document) return document.error();
  JsonFields fields(*document, "ranks");
  PeerList list;
  list.token = fields.text("token");
  list.carrier = fields.text("carrier");
  list.run = static_cast<int>(fields.integer("run", 0, 1 << 30));
  fields.each("peers", [&](JsonFields& peer, std::size_t) {
    list.peers.push_back({peer.text("address"), static_cast<int>(peer.integer("port", 0, 65535)),
                          static_cast<int>(peer.integer("node", 0, kMaximumProbeRanks))});
  });
  if (fields.error()) return *fields.error();
  if (static_cast<int>(list.peers.size()) != ranks)
    return Error{ErrorCode::device, "the list of ranks has another length than the run", {}, {}};
  return list;
}

}  // namespace

Expected<std::unique_ptr<RankLinks>> RankLinks::open(const WorkerOptions& options) {
  auto region = SharedRegion::attach(options.region_file, options.places);
  if (!region) return region.error();
  std::unique_ptr<RankLinks> links(new RankLinks(std::move(*region), options.rank, options.place));
  std::vector<int> places(static_cast<std::size_t>(options.ranks));
  if (options.peers_file < 0) {
    std::iota(places.begin(), places.end(), 0);
    links->nodes_.assign(places.size(), 0);
    links->transport_ = std::make_unique<SharedTransport>(links->region_, options.rank, places);
    links->collectives_ = std::make_unique<SharedCommunicator>(links->region_, options.rank);
    return links;
  }
  const auto list = read_peers(options.peers_file, options.ranks);
  if (!list) return list.error();
  const int here = list->peers[static_cast<std::size_t>(options.rank)].node;
  std::vector<bool> inside;
  int next = 0;
  for (std::size_t rank = 0; rank < places.size(); ++rank) {
    const int node = list->peers[rank].node;
    links->nodes_.push_back(node);
    inside.push_back(node == here);
    places[rank] = node == here ? next++ : -1;
  }
  fcntl(options.listen_file, F_SETFD, FD_CLOEXEC);
  auto between = TcpTransport::connect(options.rank, list->peers, Socket(options.listen_file), list->token, list->run,
                                       kConnecting);
  if (!between) return between.error();
  const auto shared = [&] { return std::make_unique<SharedTransport>(links->region_, options.place, places); };
  links->waiting_ = std::make_unique<MixedTransport>(shared(), std::move(*between), inside);
  if (list->carrier == "tcp") {
    links->transport_ = std::move(links->waiting_);
    links->collectives_ = std::make_unique<HostCommunicator>(links->region_, *links->transport_, options.rank,
                                                             links->nodes_, std::move(places));
    return links;
  }
  const auto module = load_mpi();
  if (!module) return module.error();
  links->mpi_ = *module;
  int size = 0;
  if (const int failed = links->mpi_->begin(options.rank, &size); failed != 0 || size != options.ranks)
    return Error{ErrorCode::device,
                 failed != 0 ? fmt::format("MPI does not start: error {}", failed)
                             : fmt::format("MPI joins {} processes instead of {}", size, options.ranks),
                 {},
                 "has the launcher the same MPI as the module? --transport tcp does without"};
  auto mpi = std::make_unique<MpiCommunicator>(*links->mpi_, options.rank, options.ranks);
  // "mpi" is MPI inside a node too; "between" leaves that to the memory that its ranks share.
  if (list->carrier == "mpi") {
    links->transport_ = std::make_unique<MpiTransport>(*links->mpi_);
    links->collectives_ = std::move(mpi);
    return links;
  }
  links->transport_ =
      std::make_unique<MixedTransport>(shared(), std::make_unique<MpiTransport>(*links->mpi_), std::move(inside));
  links->collectives_ = std::make_unique<HostCommunicator>(links->region_, *links->transport_, options.rank,
                                                           links->nodes_, std::move(places), std::move(mpi));
  return links;
}

void RankLinks::finish() {
  if (mpi_) mpi_->end();
}

bool RankLinks::follow_rank_0(bool& flag) {
  Transport& transport = beside();
  std::byte word{static_cast<unsigned char>(flag ? 2 : 1)};
  if (rank_ == 0) {
    std::vector<Part> parts;
    for (std::size_t rank = 1; rank < nodes_.size(); ++rank)
      if (nodes_[rank] != nodes_[rank - 1]) parts.push_back({static_cast<int>(rank), {&word, 1}, {}});
    if (!transport.exchange(parts)) return false;
  } else if (place_ == 0) {
    const Part part{0, {}, {&word, 1}};
    if (!transport.exchange(std::span(&part, 1))) return false;
  }
  auto& begun = region_.posted(0, 0);
  if (place_ == 0) begun.store(std::to_integer<std::uint64_t>(word));
  while (begun.load() == 0) {
    if (region_.aborted()) return false;
    usleep(2000);
  }
  flag = begun.load() == 2;
  return true;
}

}  // namespace turnpoint::probe
