// SPDX-License-Identifier: Apache-2.0
// A collective as a training step makes it, to be timed by `measure`: packed, sent and unpacked by the step's own
// resharding, of numbers that a layer has just written. A loop over the bare collective is up to three times as fast:
// nothing is packed in it, and what never changes stays in the caches of all ranks.
#pragma once

#include <memory>

#include "core/hardware/collective_model.h"
#include "gpu_probe/step/communicator.h"

namespace turnpoint::step {

class TimedExchange {
 public:
  virtual ~TimedExchange() = default;
  /// Writes the block that is to travel and then lets it travel; seconds of the latter on this rank. All ranks call it.
  virtual Expected<double> once() = 0;
};

/// A gather, scatter, all-reduce or all-to-all of so many bytes in full, between the members of the groups of `size`
/// ranks that lie `stride` apart, in all of these groups at once. The tensor has rows of numbers, which a gather puts
/// together and a scatter cuts, as layers do that split their channels: 64 a rank, fewer where there are not enough.
/// Null: another kind, or ranks that do not divide into such groups. The communicator must outlive it.
std::unique_ptr<TimedExchange> timed_exchange(Communicator& communicator, Collective kind, int size, int stride,
                                              std::int64_t bytes);

}  // namespace turnpoint::step
