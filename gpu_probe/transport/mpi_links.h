// SPDX-License-Identifier: Apache-2.0
// Ranks that an MPI library joins, through the module of gpu_probe/mpi.
#pragma once

#include <atomic>

#include "gpu_probe/mpi/module.h"
#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

/// The module beside this program, under ../lib/turnpoint, or where TURNPOINT_PROBE_MPI says; loaded once. Device
/// error: it or its MPI library is not there, or is another version's.
Expected<const MpiModule*> load_mpi();
/// "Open MPI v4.1.4, ..."
std::string mpi_library(const MpiModule& module);

/// Sums are taken in whatever order the library chooses.
class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const MpiModule& module, int rank, int ranks) : Communicator(rank, ranks), module_(module) {}

  [[nodiscard]] bool barrier(const Group& group) override;
  [[nodiscard]] bool all_reduce(const Group& group, float* data, std::int64_t count) override;
  [[nodiscard]] bool all_gather(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool all_to_all(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool broadcast(const Group& group, float* data, std::int64_t count, int root) override;
  [[nodiscard]] bool send_receive(int to, const float* in, int from, float* out, std::int64_t count) override;
  const char* carrier(const Group&) const override { return "MPI"; }

 private:
  const MpiModule& module_;
};

class MpiTransport : public Transport {
 public:
  explicit MpiTransport(const MpiModule& module) : module_(module) {}
  [[nodiscard]] bool exchange(std::span<const Part> parts) override;
  /// Nobody can be told through MPI: the probe ends all ranks when one has ended.
  void abort() override { lost_ = true; }
  bool lost() const override { return lost_; }

 private:
  const MpiModule& module_;
  std::atomic<bool> lost_ = false;  ///< told by any thread
};

}  // namespace turnpoint::probe
