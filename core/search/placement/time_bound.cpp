// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/time_bound.h"

#include <algorithm>
#include <vector>

namespace turnpoint::placement {

double least_makespan_s(const TaskGraph& graph, std::uint32_t devices) {
  constexpr double kRounding = 1 - 1e-9;  // a simulator adds the same seconds in another order
  double fastest = 0, together = 0;
  for (std::uint32_t d = 0; d < devices; ++d) {
    fastest = std::max(fastest, graph.speed_of(d));
    together += graph.speed_of(d);
  }
  double work = 0, longest = 0;
  std::vector<double> end(graph.task_count(), 0);
  for (const TaskIndex t : graph.topological) {
    for (const TaskIndex from : graph.predecessors(t)) end[t] = std::max(end[t], end[from]);
    end[t] += graph.time_s[t];
    longest = std::max(longest, end[t]);
    work += graph.time_s[t];
  }
  return std::max(work / together, longest / fastest) * kRounding;
}

}  // namespace turnpoint::placement
