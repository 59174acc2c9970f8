// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products over unrolled windows, an image and a group at a time.
#include <algorithm>

#include "gpu_probe/cpu/kernels.h"

namespace turnpoint::probe {

namespace {

/// Calls body(column index, image index or -1) for each element of the unrolled windows of `channels` channels.
template <class Body>
void each_window_element(const ConvolutionSizes& z, Body&& body) {
  const std::int64_t channels = z.c / z.groups;
  std::int64_t column = 0;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t r = 0; r < z.r; ++r)
      for (std::int64_t s = 0; s < z.s; ++s)
        for (std::int64_t p = 0; p < z.p; ++p) {
          const std::int64_t y = p * z.stride_h - z.pad_h + r * z.dilation_h;
          const bool row_inside = y >= 0 && y < z.h;
          const std::int64_t base = (c * z.h + y) * z.w;
          std::int64_t x = -z.pad_w + s * z.dilation_w;
          for (std::int64_t q = 0; q < z.q; ++q, ++column, x += z.stride_w)
            body(column, row_inside && x >= 0 && x < z.w ? base + x : -1);
        }
}

}  // namespace

void convolution_forward(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* weight, float* y,
                         float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      const float* image = x + (n * z.c + g * cg) * z.h * z.w;
      each_window_element(z, [&](std::int64_t to, std::int64_t from) { columns[to] = from < 0 ? 0 : image[from]; });
      gemm({kg, plane, window}, weight + g * kg * window, columns, 0, y + (n * z.k + g * kg) * plane);
    }
}

void convolution_data(const ConvolutionSizes& z, GemmFunction gemm, const float* weight, const float* dy, float* dx,
                      float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      float* image = dx + (n * z.c + g * cg) * z.h * z.w;
      gemm({window, plane, kg, true, false}, weight + g * kg * window, dy + (n * z.k + g * kg) * plane, 0, columns);
      std::fill(image, image + cg * z.h * z.w, 0.0f);
      each_window_element(z, [&](std::int64_t from, std::int64_t to) {
        if (to >= 0) image[to] += columns[from];
      });
    }
}

void convolution_filter(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* dy, float* dweight,
                        float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      const float* image = x + (n * z.c + g * cg) * z.h * z.w;
      each_window_element(z, [&](std::int64_t to, std::int64_t from) { columns[to] = from < 0 ? 0 : image[from]; });
      gemm({kg, window, plane, false, true}, dy + (n * z.k + g * kg) * plane, columns, n == 0 ? 0.0f : 1.0f,
           dweight + g * kg * window);
    }
}

}  // namespace turnpoint::probe
