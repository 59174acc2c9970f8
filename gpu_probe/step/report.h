// SPDX-License-Identifier: Apache-2.0
// What one rank has to say after a step.
#pragma once

#include <string>
#include <vector>

#include "gpu_probe/step/values/region.h"

namespace turnpoint::step {

/// One collective of the plan: what it was to bring to each rank, and what came.
struct Traffic {
  std::string where;
  std::int32_t reshard = -1;  ///< index into Plan::reshards; -1: of `op`'s parameters
  OperatorId op;              ///< that parameters belong to, or the resharding's producer
  bool backward = false;
  std::int32_t step = 0;  ///< index into the plan's steps of that direction
  ReshardMove move = ReshardMove::slice;
  double planned_bytes = 0;
  double received_bytes = 0;  ///< on this rank; over all ranks a ring receives exactly the planned bytes on average
  double seconds = 0;         ///< that it took on this rank, packing and unpacking included
  double in_place_bytes = 0;  ///< of a permute: what this rank already held, which the plan counts as sent
};

enum class Compared : std::uint8_t { activation, activation_gradient, parameter_gradient, new_parameter };
inline constexpr int kComparedKinds = 4;
const char* to_string(Compared kind);
/// Of results: how much an element counts in the loss; a scalar counts once, others by fixed random factors.
double loss_factor(const Tensor& tensor, TensorId id, std::uint64_t seed, std::int64_t index);

/// Elements [first, first + data) of a region, row-major; partial on `partial` axes: ranks along them hold summands.
struct Recorded {
  Compared kind = Compared::activation;
  OperatorId op;
  std::uint32_t slot = 0;  ///< output or input
  Region region;
  std::int64_t first = 0;
  std::uint32_t partial = 0;
  std::vector<double> data;
};

/// Seconds of computing per phase: forward, backward, recompute, update.
using PhaseSeconds = std::array<double, 4>;

struct StepReport {
  double loss = 0;         ///< this rank's share: the loss is the sum over all ranks
  double seconds_all = 0;  ///< of the whole step on this rank
  Ledger ledger;
  Ledger before_forward, after_forward, after_backward;  ///< copies of the ledger at these moments
  std::int64_t host_bytes = 0;                           ///< optimizer state kept by the host
  std::vector<Traffic> traffic;                          ///< in the same order on all ranks
  /// Bytes received beyond the plan's steps: sharded weights gathered for a run in backward or for a gradient although
  /// the model does not mark them as read there, and the state that ranks sharing a recurrent operator's units exchange
  /// inside it.
  double unlisted_weight_bytes = 0, inside_bytes = 0;
  double norm_bytes = 0;              ///< received for sums over parts of parameters, which plans do not list
  std::vector<PhaseSeconds> seconds;  ///< [operator], without exchanges
  std::vector<int> runs_again;        ///< [operator]: how often it ran again in backward
  int idle_repeats = 0;               ///< reshardings that the plan repeats in backward although nobody needed them
  std::vector<Recorded> recorded;
};

}  // namespace turnpoint::step
