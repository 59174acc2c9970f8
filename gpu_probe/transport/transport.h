// SPDX-License-Identifier: Apache-2.0
// Bytes between the ranks of a run, whatever carries them: the memory of one host, TCP, or both.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "gpu_probe/transport/shared_region.h"
#include "gpu_probe/transport/socket.h"

namespace turnpoint::probe {

/// What goes to one rank and what comes from it; either may be empty. The other side names the same lengths.
struct Part {
  int peer = 0;
  std::span<const std::byte> out;
  std::span<std::byte> in;
};

class Transport {
 public:
  virtual ~Transport() = default;
  /// Sends and receives all parts at once, at most one a peer and none for this rank itself. False once a peer is gone.
  /// Over TCP several threads may do so at once, one sending to a peer and one receiving from it.
  [[nodiscard]] virtual bool exchange(std::span<const Part> parts) = 0;
  /// Whoever waits for this rank, or will, is told that it is gone.
  virtual void abort() = 0;
  virtual bool lost() const = 0;  ///< a peer is gone
};

/// Ranks of one host. `places[rank]` is a rank's place in the region, -1 for one on another host.
class SharedTransport : public Transport {
 public:
  SharedTransport(SharedRegion& region, int place, std::vector<int> places)
      : region_(region), place_(place), places_(std::move(places)) {}
  [[nodiscard]] bool exchange(std::span<const Part> parts) override;
  void abort() override { region_.abort(); }
  bool lost() const override { return region_.aborted(); }

 private:
  SharedRegion& region_;
  int place_;
  std::vector<int> places_;
};

/// Where a rank can be reached.
struct Peer {
  std::string address;  ///< of its host
  int port = 0;         ///< that it listens at
  int node = 0;         ///< ranks of one node share memory
};

/// Ranks of other hosts, a connection to each.
class TcpTransport : public Transport {
 public:
  /// Connects all ranks that are on other nodes than this one: the higher rank calls, the lower one listens. All ranks
  /// do so at once. `run` tells the connections of this start of the ranks from those of an earlier one.
  static Expected<std::unique_ptr<TcpTransport>> connect(int rank, const std::vector<Peer>& peers, Socket listener,
                                                         const std::string& token, int run, double wait_s);
  [[nodiscard]] bool exchange(std::span<const Part> parts) override;
  void abort() override;
  bool lost() const override { return lost_; }

 private:
  struct Link {
    Socket socket;
    std::string early;  ///< came together with the greeting
  };
  struct Moving;
  bool send(Moving& part);
  bool receive(Moving& part);

  std::vector<Link> links_;  ///< by rank; none to ranks of this node
  std::atomic<bool> lost_ = false;
};

/// Shared memory inside a node, TCP between nodes. First what stays in the node, then the rest: that order is the same
/// on all ranks, so that none waits in a circle.
class MixedTransport : public Transport {
 public:
  MixedTransport(std::unique_ptr<Transport> inside, std::unique_ptr<Transport> between, std::vector<bool> is_inside)
      : inside_(std::move(inside)), between_(std::move(between)), is_inside_(std::move(is_inside)) {}
  [[nodiscard]] bool exchange(std::span<const Part> parts) override;
  void abort() override;
  bool lost() const override { return inside_->lost() || between_->lost(); }

 private:
  std::unique_ptr<Transport> inside_, between_;
  std::vector<bool> is_inside_;  ///< by rank
};

}  // namespace turnpoint::probe
