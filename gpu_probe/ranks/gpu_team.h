// SPDX-License-Identifier: Apache-2.0
// Ranks with a GPU each, as the measuring loop sees them: they agree as CPU ranks do, and exchange by NCCL.
#pragma once

#include "gpu_probe/ranks/host_team.h"
#include "gpu_probe/transport/gpu_collectives.h"

namespace turnpoint::probe {

class GpuTeam : public HostTeam {
 public:
  /// `exchange`: else all exchanges are refused, since they have failed too often.
  GpuTeam(cuda::Gpu& gpu, Communicator& control, Transport& transport, bool exchange);

  /// Error where NCCL is missing or memory is short. Null: what went wrong is in trouble().
  Expected<std::unique_ptr<Prepared>> prepare(const ProbeCollective& collective) override;
  /// Why the exchanges broke off.
  const std::optional<Error>& trouble() const { return trouble_; }
  /// Why there are no exchanges at all.
  const std::optional<Error>& missing() const { return missing_; }
  std::string version() const { return exchanges_ ? exchanges_->version() : std::string(); }

 private:
  cuda::Gpu& gpu_;
  std::unique_ptr<GpuCollectives> exchanges_;
  std::optional<Error> missing_, trouble_;
};

}  // namespace turnpoint::probe
