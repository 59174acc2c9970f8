// SPDX-License-Identifier: Apache-2.0
// Numbers by counter: element i of stream s under a seed is a function of the three alone, so that every rank makes
// its own part of a tensor and all parts fit together (the mixing function of SplitMix64).
#pragma once

#include <cmath>
#include <cstdint>

#include "core/model/model.h"

namespace turnpoint::step {

inline std::uint64_t mixed(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

inline std::uint64_t counter_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return mixed(mixed(mixed(seed) ^ stream) ^ index);
}

/// Uniform in [0, 1).
inline double counter_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(counter_bits(seed, stream, index) >> 11) * 0x1p-53;
}

/// An element of data, buffers and constants; row-major index in the whole tensor. Integers from 0 to 96.
inline double data_value(const Tensor& tensor, TensorId id, std::uint64_t seed, std::uint64_t index) {
  const double draw = counter_uniform(seed, id.index * 8ull, index);
  if (!is_floating(tensor.type)) return std::floor(draw * 97);
  return tensor.role == TensorRole::buffer ? 0.5 + draw : 2 * draw - 1;
}

}  // namespace turnpoint::step
