// SPDX-License-Identifier: Apache-2.0
// A task graph as a line of layers: what contiguous methods cut into stages. A backward task stands where the forward
// task stands whose output it reads, an update where its gradient stands, so that a stage holds a layer's whole
// training work; tasks of a co-location group stand together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/search/placement/placement_method.h"

namespace turnpoint::placement {

struct Sequence {
  std::vector<std::uint32_t> unit;       ///< by task: its place on the line
  std::vector<double> time_s;            ///< by unit, on a device of speed 1
  std::vector<std::int64_t> persistent;  ///< by unit
};

enum class SequenceOrder {
  topological,   ///< producers first, of those possible the lowest index
  depth_first,   ///< producers first, of those possible the one that became so last
  top_level,     ///< by the longest way from the start
  bottom_level,  ///< by the longest way to the end
};

Sequence line_up(const TaskGraph& graph, SequenceOrder order);
/// `order` puts producers first.
Sequence line_up(const TaskGraph& graph, const std::vector<TaskIndex>& order);
/// Producers first; of those possible often the one that became so last, else any. Same seed, same order.
std::vector<TaskIndex> random_order(const TaskGraph& graph, std::uint64_t seed);
/// Another such order, which differs from `order` only within `width` places from place `centre`.
std::vector<TaskIndex> shuffled(const TaskGraph& graph, const std::vector<TaskIndex>& order, std::size_t centre,
                                std::size_t width, std::uint64_t seed);
/// The order of SequenceOrder, sources late.
std::vector<TaskIndex> order_of(const TaskGraph& graph, SequenceOrder order);

/// Device per task from the first unit of every stage (stages[0] is 0; later ones do not fall).
std::vector<std::uint32_t> cut(const Sequence& sequence, const std::vector<std::uint32_t>& stages);

/// Stages of nearly equal time, as a person would cut a network: contiguous and balanced, transfers ignored.
std::vector<std::uint32_t> balanced_stages(const Sequence& sequence, std::uint32_t devices);

/// At most `devices` stages of the smallest maximum load (time, tensors in, tensors out), each with at most `limit`
/// persistent bytes, by dynamic programming over at most a few thousand blocks of the line. Empty if cancelled or if no
/// cut fits.
std::vector<std::uint32_t> optimal_stages(const TaskGraph& graph, const Sequence& sequence, std::uint32_t devices,
                                          std::int64_t limit, const RunContext& context);

}  // namespace turnpoint::placement
