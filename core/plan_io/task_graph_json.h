// SPDX-License-Identifier: Apache-2.0
// Task graphs and placements as JSON: what core/import/task_graph.h reads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/model/placement.h"
#include "core/model/task_graph.h"

namespace turnpoint {

/// turnpoint/task-graph@1; a task or an edge per line. Seconds that edges state themselves have no place in the format:
/// such a graph keeps its bytes only.
std::string write_task_graph(const TaskGraph& graph);

/// Figures that stand beside a placement (resources/manual/formats.md); only those that are given are written.
struct PlacementFigures {
  std::string method;
  std::optional<double> makespan_s, max_load_s, search_s;
  std::vector<std::int64_t> peak_bytes;        ///< by device
  std::vector<std::int64_t> persistent_bytes;  ///< by device
  std::optional<std::int64_t> peak_communication_bytes;
};

/// turnpoint/placement@1.
std::string write_placement(const Placement& placement, const PlacementFigures& figures = {});

}  // namespace turnpoint
