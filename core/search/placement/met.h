// SPDX-License-Identifier: Apache-2.0
// The placements that a search has met and that no other it met beats in both makespan and peak memory: what it can
// offer besides its one answer.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "core/model/placement.h"

namespace turnpoint::placement {

/// Thread-safe. What is kept does not depend on the order of the offers while there are at most kMost of them.
class Met {
 public:
  static constexpr std::size_t kMost = 64;  ///< beyond, the one that is missed least goes

  struct Point {
    std::int64_t bytes = 0;  ///< the largest device's peak
    double makespan_s = 0;
    Placement placement;  ///< with order
  };

  /// Whether an offer of these figures would be kept, so that nobody makes a placement for nothing.
  bool wants(std::int64_t bytes, double makespan_s) const;
  void offer(Point point);
  /// Memory of a kept placement that takes at most `makespan_s`, the least; the largest number if there is none.
  std::int64_t least_bytes_within(double makespan_s) const;
  /// By rising memory and falling makespan.
  std::vector<Point> points() const;

 private:
  bool wanted(std::int64_t bytes, double makespan_s) const;
  void thin_out();

  mutable std::mutex mutex_;
  std::vector<Point> points_;  // by rising memory
};

}  // namespace turnpoint::placement
