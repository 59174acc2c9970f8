// SPDX-License-Identifier: Apache-2.0
// ParDNN's first two steps (resources/manual/mathematics.md, 2.2): slicing the graph into linear clusters along its
// heaviest paths, and mapping the clusters to devices by the load in their window of time.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/progress.h"
#include "core/search/placement/list_schedule.h"

namespace turnpoint::pardnn {

using placement::ScheduleCosts;

struct Clusters {
  std::uint32_t primaries = 0;         ///< the first clusters, at most one per device
  std::vector<std::uint32_t> cluster;  ///< by task; every task is in exactly one
  std::vector<std::uint32_t> begin;    ///< rows of `tasks`, by cluster, and the end
  std::vector<TaskIndex> tasks;        ///< every cluster is a path, producers first
  std::vector<double> weighted_level;  ///< by task: longest way through it once the clusters' own transfers are free

  std::size_t size() const { return begin.size() - 1; }
};

/// Primaries: K times the heaviest path of what is left, levels computed anew each time. Secondaries: the heaviest
/// paths of what is left, levels computed once. O(K (V + E)). No clusters if cancelled.
Clusters slice(const ScheduleCosts& costs, const RunContext& context);

enum class Mapping {
  level_aware,  ///< LALB: least load in the cluster's window plus its transfers to the other devices
  /// As the authors released it: first, clusters join the device that they exchange most with where that takes more
  /// than all else and does not upset the loads; what is left is mapped as level_aware does.
  dominated,
  guided,  ///< GLB: clusters by start, to the device with the least load so far
};

/// Device per task; tasks of a co-location group share one.
std::vector<std::uint32_t> map_clusters(const ScheduleCosts& costs, const Clusters& clusters, Mapping mapping,
                                        const RunContext& context);

}  // namespace turnpoint::pardnn
