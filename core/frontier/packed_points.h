// SPDX-License-Identifier: Apache-2.0
// Many points of one problem in little memory. Of a deep network a point has tens of thousands of choices, and a
// frontier thousands of points; but neighbours on it make nearly the same choices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/frontier/problem.h"

namespace turnpoint::frontier {

/// Immutable. Points are had back as they were, to the last bit.
class PackedPoints {
 public:
  PackedPoints() = default;
  explicit PackedPoints(std::span<const Point> points);

  std::size_t size() const { return costs_.size(); }
  bool empty() const { return costs_.empty(); }
  Point at(std::size_t index) const;
  std::vector<Point> all() const;
  std::size_t bytes() const;

 private:
  struct Block {
    std::size_t begin = 0;                            ///< in packed_
    std::uint32_t first = 0;                          ///< point
    std::uint32_t configs = 0, nodes = 0, edges = 0;  ///< how many choices of each kind its points have
  };

  std::vector<CostPoint> costs_;
  std::vector<Block> blocks_;
  std::vector<std::uint8_t> packed_;
};

}  // namespace turnpoint::frontier
