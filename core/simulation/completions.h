// SPDX-License-Identifier: Apache-2.0
// The completions to come of a simulation: at most one per slot (a device's computing or its sending), kept as a tree
// of minima with eight children a node. Setting a slot walks to the root and finding the earliest walks down from it,
// both without a branch on times, which nobody can predict; sixteen devices are a tree of two levels. That beats a heap
// when nearly every completion is at once followed by another of the same slot. Times are not negative, so they are
// kept, compared and found as the integers that their bits are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace turnpoint {

class Completions {
 public:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  void reset(std::uint32_t slot_count) {
    level_begin_.clear();
    std::size_t total = 0;
    for (std::size_t nodes = slot_count;; nodes = (nodes + kChildren - 1) / kChildren) {
      level_begin_.push_back(total);
      total += (nodes + kChildren - 1) / kChildren * kChildren;
      if (nodes <= kChildren) break;
    }
    time_.assign(total, kNeverBits);
    earliest_ = kNeverBits;
  }
  double earliest() const { return std::bit_cast<double>(earliest_); }
  double of(std::uint32_t slot) const { return std::bit_cast<double>(time_[slot]); }
  void set(std::uint32_t slot, double time) {
    std::uint64_t bits = std::bit_cast<std::uint64_t>(time);
    std::size_t node = slot;
    for (const std::size_t begin : level_begin_) {
      std::uint64_t* const level = time_.data() + begin;
      level[node] = bits;
      node /= kChildren;
      bits = least(level + node * kChildren);
    }
    earliest_ = bits;
  }
  /// Calls body(slot) for every slot that completes at `time`, which must be earliest() and not kNever; by slot.
  template <class Body>
  void each_at(double time, Body&& body) const {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(time);
    std::size_t node = 0;
    for (std::size_t level = level_begin_.size() - 1;; --level) {
      const unsigned found = equal(level, node, bits);
      if ((found & (found - 1)) != 0) return visit(level, node, bits, body);
      node = node * kChildren + unsigned(std::countr_zero(found));
      if (level == 0) return body(std::uint32_t(node));
    }
  }

 private:
  static constexpr std::size_t kChildren = 8;
  static constexpr std::uint64_t kNeverBits = std::bit_cast<std::uint64_t>(kNever);

  static std::uint64_t least(const std::uint64_t* t) {
    return std::min(std::min(std::min(t[0], t[4]), std::min(t[1], t[5])),
                    std::min(std::min(t[2], t[6]), std::min(t[3], t[7])));
  }
  /// One bit for each child of the node that completes at that time.
  unsigned equal(std::size_t level, std::size_t node, std::uint64_t bits) const {
    const std::uint64_t* const children = time_.data() + level_begin_[level] + node * kChildren;
#ifdef __SSE2__
    const __m128d wanted = _mm_set1_pd(std::bit_cast<double>(bits));
    const auto pair = [&](int i) {
      const __m128d two = _mm_loadu_pd(reinterpret_cast<const double*>(children + 2 * i));
      return unsigned(_mm_movemask_pd(_mm_cmpeq_pd(two, wanted))) << 2 * i;
    };
    return pair(0) | pair(1) | pair(2) | pair(3);
#else
    unsigned found = 0;
    for (unsigned i = 0; i < kChildren; ++i) found |= unsigned(children[i] == bits) << i;
    return found;
#endif
  }
  template <class Body>
  void visit(std::size_t level, std::size_t node, std::uint64_t bits, Body& body) const {
    for (unsigned found = equal(level, node, bits); found != 0; found &= found - 1) {
      const std::size_t child = node * kChildren + unsigned(std::countr_zero(found));
      if (level == 0)
        body(std::uint32_t(child));
      else
        visit(level - 1, child, bits, body);  // the depth is the logarithm of the number of slots
    }
  }

  std::vector<std::size_t> level_begin_;  // in time_, the slots first
  std::vector<std::uint64_t> time_;
  std::uint64_t earliest_ = kNeverBits;
};

}  // namespace turnpoint
