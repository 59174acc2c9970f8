// SPDX-License-Identifier: Apache-2.0
// The chains on which the speed figures are stated, bit by bit as the project's generator in Python
// (layered_chain.py) makes them: operators in the shape of frontier-tracking problems, costs by layout.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "core/frontier/problem.h"

namespace turnpoint::frontier::test {

/// The random numbers of Python 3's random.Random(seed): MT19937 (Matsumoto and Nishimura 1998) seeded by its
/// init_by_array, integers by rejection of the leading bits, reals of 53 bits.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint64_t seed) {
    std::vector<std::uint32_t> key{static_cast<std::uint32_t>(seed)};
    if (seed >> 32) key.push_back(static_cast<std::uint32_t>(seed >> 32));
    state_[0] = 19650218;
    for (std::uint32_t i = 1; i < kSize; ++i) state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    std::uint32_t i = 1, j = 0;
    const auto wrap = [&] {
      if (++i < kSize) return;
      state_[0] = state_[kSize - 1];
      i = 1;
    };
    for (std::uint32_t k = kSize; k > 0; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + key[j] + j;
      j = (j + 1) % static_cast<std::uint32_t>(key.size());
      wrap();
    }
    for (std::uint32_t k = kSize - 1; k > 0; --k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) - i;
      wrap();
    }
    state_[0] = 0x80000000u;
  }

  /// randrange(low, high): uniform in [low, high).
  std::uint32_t range(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t width = high - low;
    int bits = 0;
    while (bits < 32 && (width >> bits) != 0) ++bits;
    std::uint32_t drawn = 0;
    do drawn = next() >> (32 - bits);
    while (drawn >= width);
    return low + drawn;
  }
  double uniform(double low, double high) {
    const std::uint32_t a = next() >> 5, b = next() >> 6;
    return low + (high - low) * ((a * 67108864.0 + b) * (1.0 / 9007199254740992.0));
  }

 private:
  static constexpr std::uint32_t kSize = 624, kShift = 397;

  std::uint32_t next() {
    if (at_ == kSize) {
      for (std::uint32_t k = 0; k < kSize; ++k) {
        const std::uint32_t y = (state_[k] & 0x80000000u) | (state_[(k + 1) % kSize] & 0x7fffffffu);
        state_[k] = state_[(k + kShift) % kSize] ^ (y >> 1) ^ ((y & 1) ? 0x9908b0dfu : 0);
      }
      at_ = 0;
    }
    std::uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680u;
    y ^= (y << 15) & 0xefc60000u;
    return y ^ (y >> 18);
  }

  std::array<std::uint32_t, kSize> state_{};
  std::uint32_t at_ = kSize;
};

/// n operators with K configurations and S layouts. WideResNet-like 300 200 35, Transformer-like 200 100 12, RNN-like
/// 40 200 12. With a grain above 1, every memory value is a multiple of it, whatever the split by up to 16.
inline Problem benchmark_chain(std::uint64_t seed, std::uint32_t n, std::uint32_t configs, std::uint32_t layouts,
                               std::uint32_t grain = 1) {
  const auto whole = [&](std::uint32_t bytes, std::uint32_t parts) {
    return grain == 1 ? bytes : bytes - bytes % (parts * grain);
  };
  PythonRandom r(seed);
  Problem problem;
  std::vector<std::vector<std::uint32_t>> out(n), in(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t parameters = whole(r.range(1u << 20, 1u << 28), 16);
    const std::uint32_t activations = whole(r.range(1u << 20, 1u << 27), 16);
    const double flops = r.uniform(1e-3, 2e-2);
    Node node;
    node.name = "op" + std::to_string(i);
    for (std::uint32_t k = 0; k < configs; ++k) {
      const std::uint32_t a = r.range(0, 5), b = r.range(0, 5);
      const double synchronisation = double((4 - a) * std::uint64_t(parameters)) * 1e-12 * r.uniform(1, 2);
      node.costs.add(CostPoint{(parameters >> a) + (activations >> b),
                               std::ldexp(flops, -static_cast<int>(std::min(4u, a + b))) + synchronisation});
      out[i].push_back(r.range(0, layouts));
      in[i].push_back(r.range(0, layouts));
    }
    problem.nodes.push_back(std::move(node));
  }
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    const std::uint32_t tensor = whole(r.range(1u << 18, 1u << 24), 4);
    Edge edge{i, i + 1, out[i], in[i + 1], layouts, layouts, {}};
    for (std::uint32_t x = 0; x < layouts; ++x)
      for (std::uint32_t y = 0; y < layouts; ++y) {
        if (x == y) {
          edge.costs.add(CostPoint{0, 0.0});
          continue;
        }
        constexpr std::uint32_t kFactors[] = {1, 1, 2, 3};
        const double time = double(std::uint64_t(tensor) * kFactors[r.range(0, 4)]) * 1e-10 + 1e-5;
        const CostPoint choices[] = {{0, time}, {tensor / 4, 0.55 * time}};
        edge.costs.add(choices);
      }
    problem.edges.push_back(std::move(edge));
  }
  return problem;
}

/// FNV-1a (64 bits) over all costs and classes as little-endian words: nodes (memory, bits of the time), then per edge
/// the classes of both ends and the costs.
inline std::uint64_t checksum(const Problem& problem) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto word = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 0x100000001b3u;
  };
  const auto costs = [&](const CostTable& table) {
    for (const CostPoint& p : table.points()) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &p.time, sizeof bits);
      word(static_cast<std::uint64_t>(p.memory));
      word(bits);
    }
  };
  for (const Node& node : problem.nodes) costs(node.costs);
  for (const Edge& edge : problem.edges) {
    for (const std::uint32_t c : edge.from_class) word(c);
    for (const std::uint32_t c : edge.to_class) word(c);
    costs(edge.costs);
  }
  return hash;
}

}  // namespace turnpoint::frontier::test
