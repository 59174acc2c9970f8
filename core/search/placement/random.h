// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same everywhere, so that a seed means one answer.
#pragma once

#include <cstddef>
#include <cstdint>

namespace turnpoint::placement {

/// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::size_t n) { return std::uint32_t(((next() >> 32) * std::uint64_t(n)) >> 32); }
  double unit() { return double(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace turnpoint::placement
