// SPDX-License-Identifier: Apache-2.0
// Functions of fp32 that a compiler can vectorise: no tables, no branches, no calls. Errors relative to the true value
// are below 3e-7 (erf: absolute).
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace turnpoint::probe {

#define TURNPOINT_INLINE inline __attribute__((always_inline))

/// exp(v); 0 below -87, the value at 88 above it. exp(v) = 2^n exp(r) with |r| <= ln 2 / 2, and a Taylor polynomial.
TURNPOINT_INLINE float vector_exp(float v) {
  const float low = v < -87.0f ? -87.0f : v, x = low > 88.0f ? 88.0f : low;
  const float n = __builtin_rintf(x * 1.44269504f);
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040.0f;
  p = p * r + 1.0f / 720.0f;
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const std::int32_t bits = (static_cast<std::int32_t>(n) + 127) << 23;
  float scale;
  std::memcpy(&scale, &bits, sizeof scale);
  return v < -87.0f ? 0.0f : p * scale;
}

TURNPOINT_INLINE float vector_logistic(float v) { return 1.0f / (1.0f + vector_exp(-v)); }

/// Near 0, where 1 - 2 / (exp(2 v) + 1) cancels, the series.
TURNPOINT_INLINE float vector_tanh(float v) {
  const float far = 1.0f - 2.0f / (vector_exp(2.0f * v) + 1.0f), s = v * v;
  const float near =
      v * (1.0f + s * (-1.0f / 3.0f + s * (2.0f / 15.0f + s * (-17.0f / 315.0f + s * (62.0f / 2835.0f)))));
  return s < 0.04f ? near : far;
}

/// Abramowitz and Stegun, 7.1.26.
TURNPOINT_INLINE float vector_erf(float v) {
  const float a = v < 0 ? -v : v, t = 1.0f / (1.0f + 0.3275911f * a);
  const float p =
      t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
  const float e = 1.0f - p * vector_exp(-a * a);
  return v < 0 ? -e : e;
}

}  // namespace turnpoint::probe
