// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/pareto.h"

#include <algorithm>
#include <limits>

namespace turnpoint::frontier {

CostList reduce(CostList points) {
  std::sort(points.begin(), points.end(), [](const CostPoint& a, const CostPoint& b) {
    return a.memory != b.memory ? a.memory < b.memory : a.time < b.time;
  });
  double best = std::numeric_limits<double>::infinity();
  std::size_t kept = 0;
  for (const CostPoint& p : points)
    if (p.time < best) {
      best = p.time;
      points[kept++] = p;
    }
  points.resize(kept);
  return points;
}

CostList product(const CostList& a, const CostList& b) {
  CostList sums;
  sums.reserve(a.size() * b.size());
  for (const CostPoint& p : a)
    for (const CostPoint& q : b) sums.push_back({p.memory + q.memory, p.time + q.time});
  return reduce(std::move(sums));
}

CostList unite(const CostList& a, const CostList& b) {
  CostList all = a;
  all.insert(all.end(), b.begin(), b.end());
  return reduce(std::move(all));
}

CostList higher(const CostList& a, const CostList& b) {
  CostList all = a;
  all.insert(all.end(), b.begin(), b.end());
  for (CostPoint& point : all) point.time = std::max(time_at(a, point.memory), time_at(b, point.memory));
  std::erase_if(all, [](const CostPoint& point) { return std::isinf(point.time); });
  return reduce(std::move(all));
}

bool is_frontier(const CostList& points) {
  for (std::size_t i = 1; i < points.size(); ++i)
    if (points[i].memory <= points[i - 1].memory || points[i].time >= points[i - 1].time) return false;
  return true;
}

double time_at(const CostList& staircase, std::int64_t memory) {
  const auto above = std::upper_bound(staircase.begin(), staircase.end(), memory,
                                      [](std::int64_t m, const CostPoint& p) { return m < p.memory; });
  return above == staircase.begin() ? std::numeric_limits<double>::infinity() : std::prev(above)->time;
}

}  // namespace turnpoint::frontier
