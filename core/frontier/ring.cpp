// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/ring.h"

#include <algorithm>
#include <utility>

namespace turnpoint::frontier::detail {

std::uint32_t ring_pivot(const Graph& graph, const Policy& policy) {
  const std::size_t n = graph.variables.size();
  if (double(n) * double(graph.factors.size()) > policy.most_ring_steps) return kNoPivot;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> neighbours(n);  // (variable, factor)
  for (std::uint32_t k = 0; k < graph.factors.size(); ++k) {
    const Factor& f = graph.factors[k];
    if (f.rows < 2 || f.columns < 2) continue;
    neighbours[f.a].emplace_back(f.b, k);
    neighbours[f.b].emplace_back(f.a, k);
  }
  std::uint32_t narrowest = std::numeric_limits<std::uint32_t>::max(), pivot = kNoPivot;
  std::vector<std::uint32_t> distance, queue;
  for (std::uint32_t k = 0; k < graph.factors.size(); ++k) {
    const Factor& f = graph.factors[k];
    if (f.rows < 2 || f.columns < 2) continue;
    distance.assign(n, 0);
    queue.assign(1, f.a);
    distance[f.a] = 1;
    for (std::size_t i = 0; i < queue.size() && distance[f.b] == 0; ++i)
      for (const auto& [next, factor] : neighbours[queue[i]])
        if (factor != k && distance[next] == 0) {
          distance[next] = distance[queue[i]] + 1;
          queue.push_back(next);
        }
    // Every factor that the ring must pass sees it equally long; it is cut where it is narrowest (the last of equals).
    const std::uint32_t width = std::min(f.rows, f.columns);
    if (distance[f.b] > policy.shortest_ring && width <= narrowest) {
      narrowest = width;
      pivot = f.columns <= f.rows ? f.b : f.a;
    }
  }
  return pivot;
}

}  // namespace turnpoint::frontier::detail
