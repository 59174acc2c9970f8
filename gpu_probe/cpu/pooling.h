// SPDX-License-Identifier: Apache-2.0
// Pooling by windows that are listed once and then applied to every plane.
#pragma once

#include <cstdint>
#include <vector>

namespace turnpoint::probe {

struct PoolingWindows {
  std::vector<std::int64_t> offsets;  ///< within a plane of x, window after window, none empty
  std::vector<std::int64_t> first;    ///< per element of a plane of y where its window begins in `offsets`, and the end
  std::int64_t x_plane = 1, planes = 1;

  std::int64_t y_plane() const { return static_cast<std::int64_t>(first.size()) - 1; }
};

void pool_largest(const PoolingWindows& windows, const float* x, float* y);
/// The gradient goes to the first element that was the largest.
void pool_largest_backward(const PoolingWindows& windows, const float* x, const float* dy, float* dx);
void pool_mean(const PoolingWindows& windows, const float* x, float* y);
void pool_mean_backward(const PoolingWindows& windows, const float* dy, float* dx);

}  // namespace turnpoint::probe
