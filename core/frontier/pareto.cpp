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

std::vector<BoundLine> upper_envelope(std::vector<BoundLine> lines) {
  std::sort(lines.begin(), lines.end(), [](const BoundLine& a, const BoundLine& b) {
    return a.per_byte != b.per_byte ? a.per_byte > b.per_byte : a.time > b.time;
  });
  // Where the flatter of two lines becomes the higher.
  const auto crossing = [](const BoundLine& steep, const BoundLine& flat) {
    return (steep.time - flat.time) / (steep.per_byte - flat.per_byte);
  };
  std::vector<BoundLine> highest;
  for (const BoundLine& line : lines) {
    if (!highest.empty() && highest.back().per_byte == line.per_byte) continue;
    while (!highest.empty()) {
      const double from = highest.size() > 1 ? crossing(highest[highest.size() - 2], highest.back()) : 0;
      if (crossing(highest.back(), line) > from) break;
      highest.pop_back();
    }
    highest.push_back(line);
  }
  return highest;
}

std::vector<BoundLine> lines_below(const CostList& staircase) {
  std::vector<BoundLine> lines;
  std::vector<CostPoint> hull;
  const auto slope = [](const CostPoint& a, const CostPoint& b) {
    return (a.time - b.time) / static_cast<double>(b.memory - a.memory);
  };
  for (const CostPoint& point : staircase) {
    while (hull.size() >= 2 && slope(hull[hull.size() - 2], hull.back()) <= slope(hull.back(), point)) hull.pop_back();
    hull.push_back(point);
  }
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const double per_byte = slope(hull[i - 1], hull[i]);
    lines.push_back({hull[i].time + per_byte * static_cast<double>(hull[i].memory), per_byte});
  }
  if (!hull.empty()) lines.push_back({hull.back().time, 0});
  return lines;
}

double time_above(std::span<const BoundLine> lines, double memory) {
  double time = 0;
  for (const BoundLine& line : lines) time = std::max(time, line.time - line.per_byte * memory);
  return time;
}

}  // namespace turnpoint::frontier
