// SPDX-License-Identifier: Apache-2.0
// The network that puts units into groups (Trinity, section 4.1): every unit by itself, from its features through 64
// numbers, dropout and 128 numbers to a softmax over groups.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/search/trinity/networks/layers.h"

namespace turnpoint::trinity {

/// What the network sees of the units.
struct UnitFeatures {
  std::size_t units = 0, width = 0, types = 0;
  std::vector<float> numbers;       ///< units x width
  std::vector<std::uint32_t> type;  ///< by unit, below `types`
};

struct PartitionShape {
  std::size_t units = 0, width = 0, types = 1, groups = 1;
  std::size_t type_width = 16;
  std::size_t own_width = 16;  ///< numbers that each unit learns for itself; 0 in the paper's network
  networks::Clipping clipping;
};

template <class Real>
class PartitionNetwork {
 public:
  static constexpr std::size_t kFirst = 64, kSecond = 128;

  explicit PartitionNetwork(const PartitionShape& shape);
  const networks::Places& places() const { return places_; }
  const PartitionShape& shape() const { return shape_; }
  /// Each unit's score of this group is `lean` higher than what is learnt says: with the same scores for all groups the
  /// odds of it against any one other are exp(lean). Not learnt, and so no derivative knows of it.
  void lean_towards(std::vector<std::uint32_t> group_of, double lean) {
    leaning_ = std::move(group_of);
    lean_ = lean;
  }

  struct Trace {
    std::vector<Real> input, first, second;
    std::vector<Real> scores;           ///< units x groups, clipped
    std::vector<Real> log_probability;  ///< likewise
  };
  /// `mask` (units x kFirst, see draw_dropout) may be empty: nothing is dropped.
  void forward(const Real* weights, const UnitFeatures& features, const std::vector<Real>& mask, Trace& trace) const;
  /// Adds to `gradient`, from derivatives by the clipped scores.
  void backward(const Real* weights, const UnitFeatures& features, const std::vector<Real>& mask, const Trace& trace,
                std::vector<Real> d_scores, Real* gradient) const;

 private:
  PartitionShape shape_;
  std::vector<std::uint32_t> leaning_;  ///< empty: none
  double lean_ = 0;
  networks::Places places_;
  networks::Slot types_, own_;
  networks::Dense first_, second_, out_;
};

}  // namespace turnpoint::trinity
