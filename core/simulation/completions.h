// SPDX-License-Identifier: Apache-2.0
// The completions to come of a simulation: at most one per slot (a device's computing or its sending), kept as a tree
// of minima. Setting a slot walks to the root without a branch on data, which beats a heap when nearly every completion
// is at once followed by another of the same slot.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace turnpoint {

class Completions {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void reset(std::uint32_t slots) {
    leaves_ = 1;
    while (leaves_ < slots) leaves_ *= 2;
    minimum_.assign(2 * std::size_t(leaves_), kNever);
  }
  double earliest() const { return minimum_[1]; }
  void set(std::uint32_t slot, double time) {
    std::uint32_t node = leaves_ + slot;
    minimum_[node] = time;
    while (node > 1) {
      minimum_[node / 2] = std::min(minimum_[node], minimum_[node ^ 1]);
      node /= 2;
    }
  }
  /// Calls body(slot) for every slot that completes at `time`, which must be earliest().
  template <class Body>
  void each_at(double time, Body&& body) const {
    visit(1, time, body);
  }

 private:
  template <class Body>
  void visit(std::uint32_t node, double time, Body& body) const {
    // The depth is the logarithm of the number of slots.
    while (node < leaves_) {
      const bool left = minimum_[2 * node] == time, right = minimum_[2 * node + 1] == time;
      if (left && right) visit(2 * node, time, body);
      node = 2 * node + (right ? 1 : 0);
    }
    body(node - leaves_);
  }

  std::uint32_t leaves_ = 1;
  std::vector<double> minimum_;
};

}  // namespace turnpoint
