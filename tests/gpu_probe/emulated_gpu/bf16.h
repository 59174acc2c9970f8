// SPDX-License-Identifier: Apache-2.0
// bf16 for the libraries of the emulated GPU: they read and write 2 bytes and compute in float between.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace emulated_gpu {

struct Bf16 {
  std::uint16_t bits;
  operator float() const {
    const std::uint32_t wide = std::uint32_t(bits) << 16;
    float x;
    std::memcpy(&x, &wide, sizeof x);
    return x;
  }
  /// The nearest, the even one of two that are as near, found by arithmetic: the kernels do it with bits.
  Bf16& operator=(float x) {
    double rounded = x;
    if (std::isfinite(x) && x != 0) {
      int exponent = 0;
      std::frexp(x, &exponent);
      const double unit = std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 8);
      rounded = std::nearbyint(x / unit) * unit;
    }
    const auto wide = static_cast<float>(rounded);
    std::uint32_t word;
    std::memcpy(&word, &wide, sizeof word);
    bits = static_cast<std::uint16_t>(word >> 16 | (std::isnan(x) ? 0x40 : 0));
    return *this;
  }
};
static_assert(sizeof(Bf16) == 2);

}  // namespace emulated_gpu
