// SPDX-License-Identifier: Apache-2.0
#include "core/cost/breakdown.h"

#include <numeric>

namespace turnpoint {

std::string_view to_string(MemoryPart part) {
  static constexpr std::string_view kNames[] = {"parameters",  "gradients", "optimizer",
                                                "activations", "copies",    "workspace"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view to_string(ComputePart part) {
  static constexpr std::string_view kNames[] = {"forward", "backward", "update", "recompute"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view to_string(NetworkPart part) {
  static constexpr std::string_view kNames[] = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                                "permute",    "offload",    "bubble"};
  return kNames[static_cast<std::size_t>(part)];
}

std::int64_t CostBreakdown::memory_bytes() const {
  return std::accumulate(memory.begin(), memory.end(), std::int64_t(0));
}
double CostBreakdown::compute_s() const { return std::accumulate(compute.begin(), compute.end(), 0.0); }
double CostBreakdown::network_s() const { return std::accumulate(network.begin(), network.end(), 0.0); }

CostBreakdown& CostBreakdown::operator+=(const CostBreakdown& other) {
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] += other.memory[i];
  for (std::size_t i = 0; i < compute.size(); ++i) compute[i] += other.compute[i];
  for (std::size_t i = 0; i < network.size(); ++i) network[i] += other.network[i];
  return *this;
}

CostBreakdown of_iteration(CostBreakdown one, const CostBreakdown& once, int micro_batches) {
  const double more = micro_batches - 1;
  for (std::size_t i = 0; i < one.compute.size(); ++i) one.compute[i] += more * (one.compute[i] - once.compute[i]);
  for (std::size_t i = 0; i < one.network.size(); ++i) one.network[i] += more * (one.network[i] - once.network[i]);
  return one;
}

}  // namespace turnpoint
