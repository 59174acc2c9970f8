// SPDX-License-Identifier: Apache-2.0
// Which part of its tensors a time step of an operator touches, and where that part lies in what is stored: all by the
// loops that tensors walk, nothing by the task graph.
#pragma once

#include <optional>
#include <vector>

#include "gpu_probe/step/kernels/kernels.h"

namespace turnpoint::step {

using Loops = std::vector<LoopRange>;

Region whole_of(const Tensor& tensor);
Loops whole_loops(const Operator& op);

/// The loops that walk this part of an accessed tensor, all others whole. Nothing: they would be no ranges.
std::optional<Loops> loops_of(const Model& model, const Operator& op, const Access& access, const Region& part);
/// The part of an accessed tensor that these loops walk. Nothing: it would be no block.
std::optional<Region> part_of(const Model& model, const Operator& op, const Access& access, const Loops& loops);

/// An operator as time steps. Pieces are numbered direction by direction, by position in the sequence.
struct Stepping {
  std::int64_t steps = 0;  ///< 0: it runs as a whole, in one piece
  std::size_t directions = 1;
  std::size_t time_loop = 0, direction_loop = 0;  ///< the latter where there are two directions

  std::size_t pieces() const { return steps == 0 ? 1 : directions * static_cast<std::size_t>(steps); }
  std::size_t direction(std::size_t piece) const { return steps == 0 ? 0 : piece / static_cast<std::size_t>(steps); }
  std::int64_t position(std::size_t piece) const {
    return steps == 0 ? 0 : static_cast<std::int64_t>(piece % static_cast<std::size_t>(steps));
  }
  /// Where forward comes from and goes to along its direction; nothing at the ends.
  std::optional<std::size_t> before(std::size_t piece) const {
    return neighbour(piece, direction(piece) == 0 ? -1 : 1);
  }
  std::optional<std::size_t> behind(std::size_t piece) const {
    return neighbour(piece, direction(piece) == 0 ? 1 : -1);
  }
  Loops loops(const Operator& op, std::size_t piece) const;

 private:
  std::optional<std::size_t> neighbour(std::size_t piece, std::int64_t by) const;
};
/// Nothing: the operator has no such steps.
std::optional<Stepping> stepping_of(const Model& model, const Operator& op, std::int64_t steps);

/// A part of what is read, followed through the views before it towards what is stored, as far as it stays a block.
struct Sight {
  std::vector<OperatorId> views;  ///< between what is stored and what is read, nearest to what is stored first
  std::size_t unseen = 0;         ///< so many of the first views are not seen through
  std::vector<Region> parts;      ///< of what each view from there on reads; the last one of what is read in the end
  TensorId tensor;                ///< that `parts.front()` is of
};
/// `unseen`: at least so many views are not to be seen through.
Sight sight_of(const Model& model, TensorId read, const Region& part, std::size_t unseen = 0);

/// The views between what is stored and what is read, nearest to the stored tensor first.
std::vector<OperatorId> views_before(const Model& model, TensorId read);

}  // namespace turnpoint::step
