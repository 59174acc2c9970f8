// SPDX-License-Identifier: Apache-2.0
// Ranks of several nodes as threads of a test: memory for each node and connections over loopback between them.
#pragma once

#include <functional>
#include <thread>

#include "gpu_probe/transport/host_collectives.h"

namespace turnpoint::test {

/// `nodes[rank]`, ranks of a node one after the other.
class HostRanks {
 public:
  explicit HostRanks(std::vector<int> nodes) : nodes_(std::move(nodes)) {
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
      const auto node = static_cast<std::size_t>(nodes_[rank]);
      if (sizes_.size() <= node) sizes_.resize(node + 1, 0);
      places_.push_back(sizes_[node]++);
      auto listener = probe::listen_at({"127.0.0.1", 0, {}});
      peers_.push_back({"127.0.0.1", probe::port_of(*listener), nodes_[rank]});
      listeners_.push_back(std::move(*listener));
    }
    for (const int size : sizes_) regions_.push_back(std::move(*probe::SharedRegion::create(size)));
  }

  /// What a rank has; made inside its own thread or process.
  struct Rank {
    std::unique_ptr<probe::Transport> transport;
    std::unique_ptr<probe::HostCommunicator> collectives;
  };
  Expected<Rank> open(int rank, double wait_s = 20) {
    const auto r = static_cast<std::size_t>(rank);
    std::vector<int> places(nodes_.size(), -1);
    std::vector<bool> inside;
    for (std::size_t other = 0; other < nodes_.size(); ++other) {
      inside.push_back(nodes_[other] == nodes_[r]);
      if (inside.back()) places[other] = places_[other];
    }
    auto between = probe::TcpTransport::connect(rank, peers_, std::move(listeners_[r]), "token", 1, wait_s);
    if (!between) return between.error();
    auto& region = regions_[static_cast<std::size_t>(nodes_[r])];
    Rank made;
    made.transport = std::make_unique<probe::MixedTransport>(
        std::make_unique<probe::SharedTransport>(region, places_[r], places), std::move(*between), inside);
    made.collectives =
        std::make_unique<probe::HostCommunicator>(region, *made.transport, rank, nodes_, std::move(places));
    return made;
  }

  /// Runs body(collectives, transport) on every rank at once; how many were not satisfied.
  int run(const std::function<bool(probe::Communicator&, probe::Transport&)>& body) {
    std::atomic<int> wrong = 0;
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < ranks(); ++rank)
      threads.emplace_back([&, rank] {
        auto me = open(rank);
        if (me && body(*me->collectives, *me->transport)) return;
        ++wrong;
        if (me) me->transport->abort();
      });
    threads.clear();
    return wrong;
  }
  int ranks() const { return static_cast<int>(nodes_.size()); }
  /// Memory of the rank's node.
  probe::SharedRegion& region_of(int rank) {
    return regions_[static_cast<std::size_t>(nodes_[static_cast<std::size_t>(rank)])];
  }
  const std::vector<probe::Peer>& peers() const { return peers_; }

 private:
  std::vector<int> nodes_, places_, sizes_;
  std::vector<probe::Peer> peers_;
  std::vector<probe::Socket> listeners_;
  std::vector<probe::SharedRegion> regions_;
};

}  // namespace turnpoint::test
