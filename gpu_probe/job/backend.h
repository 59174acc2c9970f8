// SPDX-License-Identifier: Apache-2.0
// What the probe asks of a kind of device: say what it is, and make the calls of one item ready to be timed.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/probe_job.h"

namespace turnpoint::probe {

/// Raised whenever kernels or the way they are timed change: what was measured before then counts no more.
inline constexpr int kKernelRevision = 4;

/// The state of a device while an item ran.
struct Conditions {
  std::optional<double> clock_mhz, temperature_c, power_w;
  std::string throttled;  ///< why the device ran slower than it could; empty: it did not, or nobody knows
};

/// Buffers and handles of one item, released with it.
class Prepared {
 public:
  virtual ~Prepared() = default;
  /// Runs all calls once and returns the seconds they took. `cold`: with caches emptied before, where the backend can.
  virtual Expected<double> sample(bool cold) = 0;
  /// Seconds of one run among `repeats` back to back; backends whose samples are hot anyway need none.
  virtual Expected<double> sample_hot(int repeats) { return (void)repeats, sample(false); }
  virtual std::string implementation() const = 0;  ///< "cublasLt 13.1.0"
};

class Backend {
 public:
  virtual ~Backend() = default;
  /// For the hello message: "devices", "libraries", "missing", "topology", "statistic".
  virtual nlohmann::json describe() = 0;
  /// Device error: it cannot be measured here, with the reason.
  virtual Expected<std::unique_ptr<Prepared>> prepare(const ProbeOperator& op) = 0;
  /// Runs every kernel on small inputs and compares with the plain loops of the CPU: one "check" message for each; none
  /// where these loops are themselves what is measured.
  virtual std::vector<nlohmann::json> check() = 0;
  virtual Conditions conditions() { return {}; }
  virtual bool cold() const = 0;  ///< whether samples find their numbers outside the caches
  virtual bool shared_host()
      const = 0;  ///< other processes may disturb: the lower quartile is the time, else the median
  /// After this error nothing works any more in this process.
  virtual bool broken() const { return false; }
};

inline Error device_error(std::string what, std::string hint = {}) {
  return {ErrorCode::device, std::move(what), {}, std::move(hint)};
}

}  // namespace turnpoint::probe
