// SPDX-License-Identifier: Apache-2.0
// A ratio plan's devices as a tree whose leaves are ranks: which ranges of every operator's loops each part has, how
// tensors lie on the parts then, and why a plan cannot be executed here.
#pragma once

#include "core/probe/step_job.h"
#include "gpu_probe/step/placement_pieces.h"

namespace turnpoint::step {

struct RatioNode {
  const StepRatio::Cut* cut = nullptr;  ///< null: one rank
  std::array<std::uint32_t, 2> child{};
  std::uint32_t parent = 0, half = 0;  ///< of which it is the first or second half; the whole is its own parent
  std::uint32_t first = 0, end = 0;    ///< its ranks, as positions in the plan's order
  std::vector<Loops> loops;            ///< [operator]
};

/// Immutable; a parent stands before its halves, the whole first.
struct RatioTree {
  std::vector<RatioNode> nodes;
  std::vector<std::uint32_t> rank_at;  ///< [position]
  std::vector<std::uint32_t> leaf_of;  ///< [rank]
  int ranks() const { return static_cast<int>(rank_at.size()); }
  std::vector<std::uint32_t> path_to(std::uint32_t rank) const;  ///< its parts from the whole inwards, itself last
  std::vector<int> ranks_of(std::uint32_t node) const;           ///< ascending

  /// Error: cuts that do not go with the parts, a share that leaves a half nothing, or a cut that cannot be executed
  /// here, with the operator's name and the reason.
  static Expected<RatioTree> make(const Model& model, const StepRatio& ratio);
};

/// How a tensor lies on the parts: at each cut by a dimension, whole on both halves, or as summands of either half.
struct RatioLie {
  std::vector<std::int8_t> held;  ///< [node]: a dimension, Layout::kReplicated or Layout::kPartial
  std::vector<Region> part;       ///< [node]: what its ranks have together
  bool anywhere_partial() const;
  RatioLie without_partial() const;
  friend bool operator==(const RatioLie&, const RatioLie&) = default;
};

/// What one operator touches of a tensor: its data, or the gradient that it leaves or is to get.
enum class RatioSide : std::uint8_t { input, output, input_gradient };
/// Error: the part that some rank touches is no block of the tensor.
Expected<RatioLie> lie_of(const Model& model, const RatioTree& tree, OperatorId op, const Access& access,
                          RatioSide side);

/// Whether a rank is in the first half of every cut at which `held` says so: the one of all copies that counts.
bool first_among(const RatioTree& tree, const RatioLie& lie, std::uint32_t rank, std::int8_t held);

}  // namespace turnpoint::step
