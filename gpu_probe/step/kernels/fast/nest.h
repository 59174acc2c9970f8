// SPDX-License-Identifier: Apache-2.0
// Loops over several strided arrays at once, brought into few and long ones.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace turnpoint::step {

/// Loops, outermost first, with the strides of K arrays.
template <std::size_t K>
struct Nest {
  struct Loop {
    std::int64_t size = 1;
    std::array<std::int64_t, K> strides{};
  };
  std::vector<Loop> loops;

  Nest(const std::vector<std::int64_t>& sizes, const std::array<std::vector<std::int64_t>, K>& strides) {
    for (std::size_t l = 0; l < sizes.size(); ++l) {
      if (sizes[l] == 1) continue;
      Loop loop{sizes[l], {}};
      for (std::size_t k = 0; k < K; ++k) loop.strides[k] = strides[k][l];
      loops.push_back(loop);
    }
  }

  /// The larger an array's stride the further out, the first array deciding before the second; then neighbours that
  /// are one walk for all arrays are joined.
  void simplify() {
    std::stable_sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.strides > b.strides; });
    std::vector<Loop> joined;
    for (const Loop& loop : loops) {
      bool one = !joined.empty();
      for (std::size_t k = 0; one && k < K; ++k) one = joined.back().strides[k] == loop.strides[k] * loop.size;
      if (one)
        joined.back() = {joined.back().size * loop.size, loop.strides};
      else
        joined.push_back(loop);
    }
    loops = std::move(joined);
  }

  /// Calls row(offsets, count, strides) for every run of the innermost loop.
  template <class Row>
  void for_each_row(const Row& row) const {
    std::array<std::int64_t, K> at{};
    if (loops.empty()) return row(at, std::int64_t(1), at);
    const std::size_t outer = loops.size() - 1;
    std::vector<std::int64_t> index(outer, 0);
    for (;;) {
      row(at, loops[outer].size, loops[outer].strides);
      std::size_t l = outer;
      for (; l > 0; --l) {
        const Loop& loop = loops[l - 1];
        if (++index[l - 1] < loop.size) {
          for (std::size_t k = 0; k < K; ++k) at[k] += loop.strides[k];
          break;
        }
        index[l - 1] = 0;
        for (std::size_t k = 0; k < K; ++k) at[k] -= loop.strides[k] * (loop.size - 1);
      }
      if (l == 0) return;
    }
  }
};

}  // namespace turnpoint::step
