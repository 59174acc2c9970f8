// SPDX-License-Identifier: Apache-2.0
// Collectives of a run over several hosts: groups inside a node through its shared memory, others over the transport.
#pragma once

#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

/// Every member sends each other member what that one needs, at once: of an all-reduce everyone sums one part, in rank
/// order as shared memory does, and hands the sum round. That is the traffic of a ring in two steps instead of 2(n-1).
class HostCommunicator : public Communicator {
 public:
  /// `nodes[rank]`: who shares memory; `places[rank]`: a rank's place in that memory.
  /// `between`, if given, has collectives of its own for groups of several nodes.
  HostCommunicator(SharedRegion& region, Transport& transport, int rank, std::vector<int> nodes,
                   std::vector<int> places, std::unique_ptr<Communicator> between = nullptr);

  [[nodiscard]] bool barrier(const Group& group) override;
  [[nodiscard]] bool all_reduce(const Group& group, float* data, std::int64_t count) override;
  [[nodiscard]] bool all_gather(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool reduce_scatter(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool all_to_all(const Group& group, const float* in, float* out, std::int64_t count) override;
  [[nodiscard]] bool broadcast(const Group& group, float* data, std::int64_t count, int root) override;
  [[nodiscard]] bool send_receive(int to, const float* in, int from, float* out, std::int64_t count) override;
  int node_of(int rank) const override { return nodes_[static_cast<std::size_t>(rank)]; }
  const char* carrier(const Group& group) const override;

 private:
  /// The group as places, where all of it is on this node; else empty.
  Group inside(const Group& group) const;
  bool counted(bool fine);
  bool counted_between(bool fine);

  SharedCommunicator shared_;
  Transport& transport_;
  std::vector<int> nodes_, places_;
  std::unique_ptr<Communicator> between_;
  std::vector<float> scratch_, sum_;
};

}  // namespace turnpoint::probe
