// SPDX-License-Identifier: Apache-2.0
// What the probe shall measure: the operators of a model in the local sizes that plans give them, or a standard list.
// This is where operators by loop dimensions become kernels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/cost/operator_cost.h"
#include "core/hardware/probe_job.h"

namespace turnpoint {

/// FLOP and bytes of one phase on a device that has these local sizes of the loop dimensions; the same figures as
/// OperatorCostModel::work under a configuration that splits them so.
PhaseWork local_work(const Model& model, const Operator& op, std::span<const std::int64_t> local, Precision precision,
                     bool backward);

/// The kernels of one phase. Empty: there is nothing to run (views, data). The error says why the probe has none.
Expected<std::vector<ProbeCall>> probe_calls(const Model& model, const Operator& op,
                                             std::span<const std::int64_t> local, bool backward);

/// Items without those that several operators share. `left_out` gets a sentence for each kind that cannot be measured.
struct ProbeItems {
  std::vector<ProbeOperator> operators;
  std::vector<std::string> left_out;
};

/// All operators of a model, whole and split over 2, 4, ... up to `devices` devices in every way that a configuration
/// may; those of the fewest splits first, of these the ones with the most work.
ProbeItems model_items(const Model& model, int devices, std::span<const ProbePrecision> precisions);

/// Shapes of every kind from small to large, from which constants can be fitted, and copies. `large`: what a GPU is
/// filled with, else a CPU core.
ProbeItems standard_items(bool large, std::span<const ProbePrecision> precisions);

/// Every collective on every size of group that divides the ranks: neighbours with 4^i bytes first and then the 2^i
/// between them, then groups as far apart as they can be with 4^i bytes.
std::vector<ProbeCollective> standard_collectives(int ranks, std::int64_t least_bytes, std::int64_t most_bytes);

}  // namespace turnpoint
