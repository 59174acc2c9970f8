// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/cpu/pooling.h"

#include <algorithm>

namespace turnpoint::probe {

namespace {

/// Calls body(plane's x, plane's y as offsets, window's number, its offsets' begin and end).
template <class Body>
void each_window(const PoolingWindows& w, const Body& body) {
  const std::int64_t y_plane = w.y_plane();
  for (std::int64_t plane = 0; plane < w.planes; ++plane)
    for (std::int64_t p = 0; p < y_plane; ++p)
      body(plane * w.x_plane, plane * y_plane + p, w.offsets.data() + w.first[static_cast<std::size_t>(p)],
           w.offsets.data() + w.first[static_cast<std::size_t>(p) + 1]);
}

std::int64_t largest_of(const float* x, const std::int64_t* from, const std::int64_t* to) {
  std::int64_t best = *from;
  for (; from != to; ++from)
    if (x[*from] > x[best]) best = *from;
  return best;
}

}  // namespace

void pool_largest(const PoolingWindows& windows, const float* x, float* y) {
  each_window(windows, [&](std::int64_t plane, std::int64_t to, const auto* from, const auto* end) {
    float most = x[plane + *from];
    for (; from != end; ++from) most = std::max(most, x[plane + *from]);
    y[to] = most;
  });
}

void pool_largest_backward(const PoolingWindows& windows, const float* x, const float* dy, float* dx) {
  std::fill(dx, dx + windows.planes * windows.x_plane, 0.0f);
  each_window(windows, [&](std::int64_t plane, std::int64_t to, const auto* from, const auto* end) {
    dx[plane + largest_of(x + plane, from, end)] += dy[to];
  });
}

void pool_mean(const PoolingWindows& windows, const float* x, float* y) {
  each_window(windows, [&](std::int64_t plane, std::int64_t to, const auto* from, const auto* end) {
    float sum = 0;
    for (const auto* o = from; o != end; ++o) sum += x[plane + *o];
    y[to] = sum / static_cast<float>(end - from);
  });
}

void pool_mean_backward(const PoolingWindows& windows, const float* dy, float* dx) {
  std::fill(dx, dx + windows.planes * windows.x_plane, 0.0f);
  each_window(windows, [&](std::int64_t plane, std::int64_t to, const auto* from, const auto* end) {
    const float share = dy[to] / static_cast<float>(end - from);
    for (const auto* o = from; o != end; ++o) dx[plane + *o] += share;
  });
}

}  // namespace turnpoint::probe
