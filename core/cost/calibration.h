// SPDX-License-Identifier: Apache-2.0
// Operator times fitted to measurements. A measured row (one operator of another program) is described as operators of
// ours, whose work the cost model counts; constants per kind follow by least squares, and any other size of that kind
// is then costed with them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/cost/operator_cost.h"
#include "core/hardware/measured/profile_builder.h"

namespace turnpoint {

/// One measured time and what our cost model sees behind it.
struct MeasuredWork {
  struct Part {
    std::string kind;  ///< fitted_kind()
    PhaseWork work;
  };
  /// A collective that the time includes.
  struct Exchange {
    Collective kind = Collective::all_reduce;
    int devices = 1;
    double bytes = 0;  ///< the full tensor
  };

  std::string name;  ///< as the log has it
  std::string phase;
  Precision precision = Precision::fp32;
  double time_s = 0;
  std::vector<Part> parts;
  std::optional<Exchange> exchange;
  /// Bytes that are there after the operator's forward: its result and what it keeps for backward.
  double activation_bytes = 0, measured_activation_bytes = 0;
  int tensor_parallel = 1, micro_batch = 0, variant = 0;
};

/// The rows of a log that can be described so: GPT and wide ResNet tables of Aceso (the latter unpartitioned), matrix
/// products of DeepBench. Everything about sizes is read from the log itself. Empty for logs of other kinds.
std::vector<MeasuredWork> measured_work(const MeasuredLog& log);

/// Measured sizes from which launch, FLOP and bytes of a kind are told apart: as many as there are constants, and one to
/// see that they hold. Of fewer a fit is one rate.
inline constexpr int kSizesOfFit = 4;

/// Constants for every (kind, phase, precision) that occurs: non-negative, least squares of |predicted - measured| over
/// measured^(3/4), outliers damped. `beside[i]` seconds of row i are known to be something else (its collective).
std::vector<OperatorFit> fit_operators(const std::vector<MeasuredWork>& rows, const std::vector<double>& beside = {});

/// Seconds of a row under these fits; nothing where one of its parts has none.
std::optional<double> fitted_seconds(const std::vector<OperatorFit>& fits, const MeasuredWork& row);

/// The cluster with fits from all rows of these logs that no collective is part of, and a note for each kind; the same
/// cluster where no log holds any.
ClusterPtr with_operator_fits(const ClusterPtr& cluster, const std::vector<MeasuredLog>& logs,
                              std::vector<std::string>& notes);

/// The same for what was read from files: the report's cluster, coverage and notes.
void calibrate(HardwareReport& report);

}  // namespace turnpoint
