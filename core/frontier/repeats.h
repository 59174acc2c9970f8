// SPDX-License-Identifier: Apache-2.0
// What a problem with equal layers says more than once. Reading each of it once keeps the presolve short under a
// slider, where it is made anew at every move. Each is known by the first that says it. Only contents that copies share
// (CostTable::identity) are found equal without comparison, so a problem whose tables are equal but apart is read in
// full, with the same result.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "core/base/parallel.h"
#include "core/frontier/problem.h"

namespace turnpoint::frontier::detail {

/// One step of the hashes of this folder.
inline std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15ull;
  return h ^ (h >> 29);
}
/// Of memory and time, in order.
std::uint64_t hash_points(std::span<const CostPoint> points, std::uint64_t seed);

struct Repeats {
  std::vector<std::uint32_t> from, to;  ///< per edge: equal lists of classes have equal numbers, on both sides
  std::vector<std::uint32_t> edge;      ///< per edge: the first with the same contents (shared, not compared) and lists
  std::vector<std::uint32_t> table;     ///< per edge: the first whose contents and used classes are equal
};

/// Time O(size of the problem). After a stop request the result is incomplete and must not be used.
Repeats find_repeats(const Problem& problem, ThreadPool& pool, const std::stop_token& stop);

/// One end of an edge at a node.
struct End {
  std::uint32_t edge = 0;
  bool from = false;
};

/// Per node: the first with the same (shared) costs and equal edges at it, in order.
std::vector<std::uint32_t> find_equal_nodes(const Problem& problem, const std::vector<std::vector<End>>& ends,
                                            const Repeats& repeats);

}  // namespace turnpoint::frontier::detail
