// SPDX-License-Identifier: Apache-2.0
// What one rank has to reach the others, on its own host and on others.
#pragma once

#include <memory>
#include <vector>

#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/crew.h"
#include "gpu_probe/transport/mpi_links.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

class RankLinks {
 public:
  /// Attaches the memory of this host and connects to the ranks of other hosts, which do the same.
  static Expected<std::unique_ptr<RankLinks>> open(const WorkerOptions& options);

  /// Everyone gets rank 0's flag and goes on once rank 0 has called this too; until then the others sleep, and leave
  /// the machine to it.
  [[nodiscard]] bool follow_rank_0(bool& flag);
  bool several_nodes() const { return nodes_.back() != nodes_.front(); }

  Communicator& collectives() { return *collectives_; }
  Transport& transport() { return *transport_; }
  /// Sleeps while it waits, and serves several threads between hosts (TcpTransport): what MPI does neither of.
  Transport& beside() { return waiting_ ? *waiting_ : *transport_; }
  SharedRegion& region() { return region_; }  ///< of this host's ranks
  /// Leaves an MPI library in good order; for ranks that are through.
  void finish();

 private:
  RankLinks(SharedRegion region, int rank, int place) : region_(std::move(region)), rank_(rank), place_(place) {}

  SharedRegion region_;
  int rank_, place_;
  std::vector<int> nodes_;
  /// `transport_` carries the step's bytes; what tells the others to begin waits asleep, as MPI does not.
  std::unique_ptr<Transport> waiting_, transport_;
  const MpiModule* mpi_ = nullptr;
  std::unique_ptr<Communicator> collectives_;
};

}  // namespace turnpoint::probe
