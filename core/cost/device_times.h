// SPDX-License-Identifier: Apache-2.0
// What kernels take on the device of a scenario, at its what-if speed: rates of the data sheet, measured times, and
// what was fitted to them. Where a profile tells times with the numbers inside the caches and outside them, they are
// joined by the share that the scenario's step finds inside (resources/manual/costs.md, 3).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/scenario/scenario.h"

namespace turnpoint {

/// Kind and phase of the fit (launch and bytes) that the update of parameters follows, where a profile has it.
inline constexpr const char* kUpdateKind = "update";

/// In which whatever is no 8-bit product is computed.
Precision plain_precision(Precision precision);

/// Bytes that each of `devices` goes through in the forward and backward of a model, before it comes back to a number:
/// weights, activations, and the gradients of both, by equal parts. With the update also the optimizer state.
double working_set_bytes(const Model& model, const Settings& settings, int devices, bool with_update);

class DeviceTimes {
 public:
  explicit DeviceTimes(const Scenario& scenario);

  /// Of one run of the kernel; nothing where it was not measured.
  std::optional<double> measured(Precision precision, std::string_view kind, const std::vector<std::int64_t>& dims,
                                 bool backward) const;
  bool any_measured() const { return !measured_.empty(); }
  /// Null where there is none.
  const OperatorFit* fit(Precision precision, std::string_view kind, bool backward) const;
  bool any_fit() const { return !fits_.empty(); }

  double flop_per_second = 0, eight_bit_flop_per_second = 0;
  double vector_flop_per_second = 0;  ///< of all but products and convolutions, on the ordinary (fp32) units
  double bytes_per_second = 0, update_bytes_per_second = 0;
  std::optional<OperatorFit> update;  ///< of kUpdateKind
  std::optional<OperatorFit> sums;    ///< of gradients: as activations are added, else as parameters are updated
  bool adds_as_updates = false;

 private:
  std::map<std::string, double> measured_;   ///< by precision, kind, local dims and phase
  std::map<std::string, OperatorFit> fits_;  ///< by precision, kind and phase
};

}  // namespace turnpoint
