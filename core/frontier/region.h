// SPDX-License-Identifier: Apache-2.0
// Where the Lagrangian bounds leave anything open, for one entry of a table. Part of lists.cpp.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/frontier/dispatch.h"
#include "core/frontier/lists.h"

namespace turnpoint::frontier::detail {

TURNPOINT_VECTOR_CLONES static inline void lower_to_line(double* bound, std::size_t count, double start, double slope) {
  for (std::size_t k = 0; k < count; ++k) {
    const double v = start - slope * static_cast<double>(static_cast<std::int32_t>(k));
    bound[k] = v < bound[k] ? v : bound[k];
  }
}

TURNPOINT_VECTOR_CLONES static inline void raise_to(double* bound, const double* other, std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) bound[k] = other[k] > bound[k] ? other[k] : bound[k];
}

/// The region worth keeping for one entry, as upper limits of time per bucket of memory.
class Region {
 public:
  explicit Region(const ListOptions& options) : options_(options) {}

  bool active() const { return !options_.bounds.empty(); }
  bool alive(std::uint32_t table, std::size_t entry) const {
    if (!active()) return true;
    for (const LaneBlock* block : options_.bounds)
      if (block->bounds(table).row_of[entry] != TableBounds::kDead) return true;
    return false;
  }

  const ListOptions& options() const { return options_; }
  /// Memory within one bucket differs by less than 2^this; 0: exact.
  int coarse_shift() const { return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(options_.width))) - 1; }

  /// limits[k] = largest time worth keeping for memory low + (k << shift); +infinity without bounds.
  /// Where there are many k, some in a row share the limit of the first, which is the largest.
  void fill(std::uint32_t table, std::size_t entry, std::int64_t low, int shift, double* limits,
            std::size_t count) const {
    const int wider = std::max(0, static_cast<int>(std::bit_width(count - 1)) - 8);
    fill_each(table, entry, low, shift + wider, limits, ((count - 1) >> wider) + 1);
    if (wider == 0) return;
    for (std::size_t k = ((count - 1) >> wider) + 1; k-- > 0;)
      std::fill(limits + (k << wider), limits + std::min(count, (k + 1) << wider), limits[k]);
  }

 private:
  void fill_each(std::uint32_t table, std::size_t entry, std::int64_t low, int shift, double* limits,
                 std::size_t count) const {
    std::fill(limits, limits + count, active() ? -kInfinity : kInfinity);
    const double first = static_cast<double>(low), step = std::ldexp(1.0, shift);
    for (const LaneBlock* block : options_.bounds) {
      const TableBounds& bounds = block->bounds(table);
      const std::uint32_t row = bounds.row_of[entry];
      if (row == TableBounds::kDead) continue;
      for (std::uint32_t mask = bounds.masks[row]; mask != 0; mask &= mask - 1)
        fill_region(*block, static_cast<std::size_t>(std::countr_zero(mask)), &bounds.outside[row * kLanes],
                    block->offset(table), first, step, limits, count);
    }
  }

  /// A region is where every lane leaves room.
  static void fill_region(const LaneBlock& block, std::size_t region, const float* outside, const Lanes& offset,
                          double first, double step, double* limits, std::size_t count) {
    constexpr std::size_t kPiece = 512;
    double piece[kPiece];
    for (std::size_t begin = 0; begin < count; begin += kPiece) {
      const std::size_t size = std::min(kPiece, count - begin);
      const double from = first + step * static_cast<double>(begin);
      std::fill(piece, piece + size, kInfinity);
      for (std::size_t l = 0; l < kLanes; ++l) {
        const double slack = block.slack()[region][l];
        if (slack >= kNoLimit) continue;
        const double wm = block.weight_memory[l], wt = block.weight_time[l];
        const double room = slack - outside[l] + offset[l] - wm * from;
        if (wt > 0)
          lower_to_line(piece, size, room / wt, wm * step / wt);
        else
          for (std::size_t k = 0; k < size; ++k)
            if (!(wm * step * static_cast<double>(k) < room)) piece[k] = -kInfinity;
      }
      raise_to(limits + begin, piece, size);
    }
  }

  const ListOptions& options_;
};

}  // namespace turnpoint::frontier::detail
