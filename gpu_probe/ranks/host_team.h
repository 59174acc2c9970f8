// SPDX-License-Identifier: Apache-2.0
// The ranks of one host or several, as the measuring loop sees them.
#pragma once

#include "gpu_probe/measure/loop.h"
#include "gpu_probe/step/communicator.h"
#include "gpu_probe/transport/collectives.h"
#include "gpu_probe/transport/transport.h"

namespace turnpoint::probe {

/// The ranks that this one is with when groups of `size` ranks lie `stride` apart.
Group strided_group(int rank, int size, int stride);

class HostTeam : public Team {
 public:
  /// Collectives are timed as a step makes them (gpu_probe/step/timed_exchange.h).
  HostTeam(Communicator& ranks, Transport& transport);

  int rank() const override { return ranks_.rank(); }
  int ranks() const override { return ranks_.ranks(); }
  bool barrier() override { return ranks_.barrier(everyone_); }
  bool agree(std::span<float> values) override;
  bool largest(float& value) override;
  Expected<std::unique_ptr<Prepared>> prepare(const ProbeCollective& collective) override;
  DeviceGroup shape(const ProbeCollective& collective) const override;

 protected:
  /// Of ranks whose exchanges something else times.
  explicit HostTeam(Communicator& ranks) : ranks_(ranks), everyone_(ranks.all()) {}

 private:
  Communicator& ranks_;
  Group everyone_;
  std::unique_ptr<step::Communicator> of_steps_;
};

}  // namespace turnpoint::probe
