// SPDX-License-Identifier: Apache-2.0
// The measuring of a job's items, one after the other, in step with the other ranks.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "core/hardware/probe_job.h"
#include "gpu_probe/job/backend.h"

namespace turnpoint::probe {

/// The ranks that measure together, as one of them sees them. What returns bool is false once a rank has died.
class Team {
 public:
  virtual ~Team() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  [[nodiscard]] virtual bool barrier() = 0;
  /// Everyone gets the values of rank 0.
  [[nodiscard]] virtual bool agree(std::span<float> values) = 0;
  /// Everyone gets the largest value.
  [[nodiscard]] virtual bool largest(float& value) = 0;
  /// An exchange with its buffers, ready to be timed; null: a rank died while it was tried. Samples are this rank's.
  /// Error, on all ranks: it cannot be measured here.
  virtual Expected<std::unique_ptr<Prepared>> prepare(const ProbeCollective& collective) = 0;
  /// Of the groups that this collective runs in.
  virtual DeviceGroup shape(const ProbeCollective& collective) const = 0;
};

struct LoopOptions {
  std::size_t start = 0;                           ///< place in run_order() to begin at
  double deadline = 0;                             ///< host clock, s
  std::function<double()> clock;                   ///< s; host_clock() but in tests
  std::function<void(const nlohmann::json&)> say;  ///< start, item, error and done messages; rank 0's are heard
};

/// False once a rank has died or the device works no more. Times are the lower quartile on a shared host, else the
/// median; of a collective whose times spread by more than a quarter there the least, since what disturbs only adds.
bool run_loop(const ProbeJob& job, Backend& backend, Team& team, const LoopOptions& options);

/// At most so many sizes between the listed ones.
inline constexpr int kMostMidpoints = 400;
/// Collectives on a shared host: at least so many samples while three times an item's time allows.
inline constexpr int kEnoughExchanges = 20;
inline constexpr double kVeryNoisy = 0.25;

}  // namespace turnpoint::probe
