// SPDX-License-Identifier: Apache-2.0
// Itemised cost of an operator, a resharding or a whole plan: bytes per device and seconds of one iteration.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace turnpoint {

/// Memory per device by what it holds, bytes. The order is the order of the bars.
enum class MemoryPart : std::uint8_t { parameters, gradients, optimizer, activations, copies, workspace };
inline constexpr int kMemoryParts = 6;
/// Compute time by phase, seconds.
enum class ComputePart : std::uint8_t { forward, backward, update, recompute };
inline constexpr int kComputeParts = 4;
/// Network time by collective, seconds; `offload` is the way to the host and back. `permute` is also what the stages of
/// a pipeline send each other, `bubble` what a stage waits for the others: all that is not computing is network, but
/// no link is busy with it. Of whole plans only.
enum class NetworkPart : std::uint8_t { all_reduce, all_gather, reduce_scatter, all_to_all, permute, offload, bubble };
inline constexpr int kNetworkParts = 7;
std::string_view to_string(MemoryPart part);
std::string_view to_string(ComputePart part);
std::string_view to_string(NetworkPart part);

struct CostBreakdown {
  std::array<std::int64_t, kMemoryParts> memory{};
  std::array<double, kComputeParts> compute{};
  std::array<double, kNetworkParts> network{};

  std::int64_t& operator[](MemoryPart part) { return memory[static_cast<std::size_t>(part)]; }
  double& operator[](ComputePart part) { return compute[static_cast<std::size_t>(part)]; }
  double& operator[](NetworkPart part) { return network[static_cast<std::size_t>(part)]; }
  std::int64_t memory_bytes() const;
  double compute_s() const;
  double network_s() const;
  double time_s() const { return compute_s() + network_s(); }
  CostBreakdown& operator+=(const CostBreakdown& other);
};

/// An iteration that goes through so many micro-batches: the times of `one`, which is of one of them, as often; but for
/// those in `once`, a part of them, which it has once. Memory stays what it is.
CostBreakdown of_iteration(CostBreakdown one, const CostBreakdown& once, int micro_batches);

}  // namespace turnpoint
