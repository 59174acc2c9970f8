// SPDX-License-Identifier: Apache-2.0
// Convolutions as matrix products over unrolled windows, an image and a group at a time.
#include <algorithm>

#include "gpu_probe/cpu/kernels.h"

namespace turnpoint::probe {

namespace {

/// Calls body(columns' row, image offset, first column inside, behind the last) for
/// each row of the unrolled windows of a group's channels: where the columns in between lie in the image.
template <class Body>
void each_window_row(const ConvolutionSizes& z, Body&& body) {
  const std::int64_t channels = z.c / z.groups;
  std::int64_t to = 0;
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t r = 0; r < z.r; ++r)
      for (std::int64_t s = 0; s < z.s; ++s) {
        // Columns q with 0 <= q stride + x < w.
        const std::int64_t x = s * z.dilation_w - z.pad_w;
        const std::int64_t first = std::clamp<std::int64_t>((-x + z.stride_w - 1) / z.stride_w, 0, z.q),
                           last = std::clamp<std::int64_t>((z.w - x + z.stride_w - 1) / z.stride_w, first, z.q);
        for (std::int64_t p = 0; p < z.p; ++p, to += z.q) {
          const std::int64_t y = p * z.stride_h - z.pad_h + r * z.dilation_h;
          if (y < 0 || y >= z.h || x >= z.w)
            body(to, std::int64_t(0), std::int64_t(0), std::int64_t(0));
          else
            body(to, (c * z.h + y) * z.w + x + first * z.stride_w, first, last);
        }
      }
}

void unroll(const ConvolutionSizes& z, const float* image, float* columns) {
  each_window_row(z, [&](std::int64_t to, std::int64_t from, std::int64_t first, std::int64_t last) {
    float* row = columns + to;
    std::fill(row, row + first, 0.0f);
    if (z.stride_w == 1)
      std::copy(image + from, image + from + (last - first), row + first);
    else
      for (std::int64_t q = first, x = from; q < last; ++q, x += z.stride_w) row[q] = image[x];
    std::fill(row + last, row + z.q, 0.0f);
  });
}

void roll_up(const ConvolutionSizes& z, const float* columns, float* image) {
  std::fill(image, image + z.c / z.groups * z.h * z.w, 0.0f);
  each_window_row(z, [&](std::int64_t from, std::int64_t to, std::int64_t first, std::int64_t last) {
    const float* row = columns + from;
    if (z.stride_w == 1)
      for (std::int64_t q = first; q < last; ++q) image[to + q - first] += row[q];
    else
      for (std::int64_t q = first, x = to; q < last; ++q, x += z.stride_w) image[x] += row[q];
  });
}

}  // namespace

bool is_product(const ConvolutionSizes& z) {
  return z.r == 1 && z.s == 1 && z.stride_h == 1 && z.stride_w == 1 && z.pad_h == 0 && z.pad_w == 0 && z.p == z.h &&
         z.q == z.w;
}

void convolution_forward(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* weight, float* y,
                         float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  const bool product = is_product(z);
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      const float* image = x + (n * z.c + g * cg) * z.h * z.w;
      if (!product) unroll(z, image, columns);
      gemm({kg, plane, window}, weight + g * kg * window, product ? image : columns, 0, y + (n * z.k + g * kg) * plane);
    }
}

void convolution_data(const ConvolutionSizes& z, GemmFunction gemm, const float* weight, const float* dy, float* dx,
                      float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  const bool product = is_product(z);
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      float* image = dx + (n * z.c + g * cg) * z.h * z.w;
      gemm({window, plane, kg, true, false}, weight + g * kg * window, dy + (n * z.k + g * kg) * plane, 0,
           product ? image : columns);
      if (!product) roll_up(z, columns, image);
    }
}

void convolution_filter(const ConvolutionSizes& z, GemmFunction gemm, const float* x, const float* dy, float* dweight,
                        float* columns) {
  const std::int64_t kg = z.k / z.groups, cg = z.c / z.groups, window = cg * z.r * z.s, plane = z.p * z.q;
  const bool product = is_product(z);
  for (std::int64_t n = 0; n < z.n; ++n)
    for (std::int64_t g = 0; g < z.groups; ++g) {
      const float* image = x + (n * z.c + g * cg) * z.h * z.w;
      if (!product) unroll(z, image, columns);
      gemm({kg, window, plane, false, true}, dy + (n * z.k + g * kg) * plane, product ? image : columns,
           n == 0 ? 0.0f : 1.0f, dweight + g * kg * window);
    }
}

}  // namespace turnpoint::probe
