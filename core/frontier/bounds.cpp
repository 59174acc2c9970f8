// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/bounds.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace turnpoint::frontier::detail {

void Achieved::add(std::vector<Point>&& plans) {
  const auto before = [](const Point& a, const Point& b) {
    return a.memory != b.memory ? a.memory < b.memory : a.time < b.time;
  };
  if (!std::is_sorted(plans.begin(), plans.end(), before)) std::stable_sort(plans.begin(), plans.end(), before);
  const auto old = static_cast<std::ptrdiff_t>(points_.size());
  points_.insert(points_.end(), std::make_move_iterator(plans.begin()), std::make_move_iterator(plans.end()));
  std::inplace_merge(points_.begin(), points_.begin() + old, points_.end(), before);
  double best = kInfinity;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    if (!(points_[i].time < best)) continue;
    best = points_[i].time;
    if (kept != i) points_[kept] = std::move(points_[i]);
    ++kept;
  }
  points_.resize(kept);
}

void Achieved::know(CostList elsewhere, double slowest) {
  elsewhere_ = std::move(elsewhere);
  slowest_ = slowest;
  known_ = is_limited() ? unite(elsewhere_, {{0, slowest_}}) : elsewhere_;
}

CostList Achieved::costs() const {
  CostList own;
  own.reserve(points_.size());
  for (const Point& point : points_) own.push_back({point.memory, point.time});
  return elsewhere_.empty() ? own : unite(own, elsewhere_);
}

CostList Achieved::staircase() const { return is_limited() ? unite(costs(), {{0, slowest_}}) : costs(); }

bool Achieved::covers(std::int64_t memory, double time) const {
  if (!known_.empty() && time_at(known_, memory) <= time) return true;
  const auto above = std::upper_bound(points_.begin(), points_.end(), memory,
                                      [](std::int64_t m, const Point& p) { return m < p.memory; });
  return above != points_.begin() && std::prev(above)->time <= time;
}

bool Achieved::covers_chord(const CostPoint& low, const CostPoint& high) const {
  if (known_.empty()) return false;
  // Up to the next corner the staircase stands still while the line falls.
  auto above = std::upper_bound(known_.begin(), known_.end(), low.memory,
                                [](std::int64_t m, const CostPoint& p) { return m < p.memory; });
  const double slope = (high.time - low.time) / static_cast<double>(high.memory - low.memory);
  for (bool last = above == known_.begin(); !last; ++above) {
    last = above == known_.end() || above->memory >= high.memory;
    const double line = last ? high.time : low.time + slope * static_cast<double>(above->memory - low.memory);
    if (std::prev(above)->time > line) return false;
    if (last) return true;
  }
  return false;
}

std::vector<std::size_t> Achieved::hull() const {
  std::vector<std::size_t> hull;
  const auto x = [&](std::size_t i) { return static_cast<double>(points_[i].memory - points_[0].memory); };
  for (std::size_t i = 0; i < points_.size(); ++i) {
    while (hull.size() >= 2) {
      const std::size_t a = hull[hull.size() - 2], b = hull.back();
      const double cross =
          (x(b) - x(a)) * (points_[i].time - points_[a].time) - (points_[b].time - points_[a].time) * (x(i) - x(a));
      if (cross > 0) break;
      hull.pop_back();
    }
    hull.push_back(i);
  }
  return hull;
}

std::optional<std::size_t> corner_above(const std::vector<Point>& points, const std::vector<std::size_t>& hull,
                                        std::int64_t memory) {
  const auto above = std::find_if(hull.begin(), hull.end(), [&](std::size_t i) { return points[i].memory > memory; });
  if (above == hull.begin() || above == hull.end()) return std::nullopt;
  return static_cast<std::size_t>(above - hull.begin());
}

std::optional<std::pair<CostPoint, CostPoint>> Achieved::chord_at(std::int64_t memory) const {
  const std::vector<std::size_t> corners = hull();
  const auto above = corner_above(points_, corners, memory);
  if (!above) return std::nullopt;
  const Point &a = points_[corners[*above - 1]], &b = points_[corners[*above]];
  return std::pair(CostPoint{a.memory, a.time}, CostPoint{b.memory, b.time});
}

Point make_point(const Graph& graph, const Choice& choice) {
  std::vector<Choice> choices;
  for (const std::uint32_t c : choice) choices.push_back({c});
  Point point;
  make_points(graph, choices, {&point, 1});
  return point;
}

void make_points(const Graph& graph, std::span<const Choice> choices, std::span<Point> points) {
  const std::size_t nodes = graph.variables.size(), count = points.size();
  std::vector<std::int64_t> memory(count, 0);
  std::vector<double> time(count, 0);
  const auto add = [&](const Leaf& leaf, const Choice& choice) {
    for (std::size_t i = 0; i < count; ++i) {
      memory[i] += leaf.memory[choice[i]];
      time[i] += leaf.time[choice[i]];
    }
  };
  for (Point& point : points) {
    point.configs.resize(nodes);
    point.node_alternatives.resize(nodes);
    point.edge_alternatives.resize(graph.factors.size());
  }
  for (std::size_t v = 0; v < nodes; ++v) {
    const Origin& origin = graph.origins[graph.variables[v].origin];
    for (std::size_t i = 0; i < count; ++i) {
      points[i].configs[v] = origin.config[choices[v][i]];
      points[i].node_alternatives[v] = origin.alternative[choices[v][i]];
    }
    add(*graph.leaves[graph.variables[v].leaf], choices[v]);
  }
  for (std::size_t k = 0; k < graph.factors.size(); ++k) {
    const Leaf& leaf = *graph.leaves[graph.factors[k].leaf];
    const Choice& choice = choices[nodes + k];
    for (std::size_t i = 0; i < count; ++i) points[i].edge_alternatives[k] = leaf.alternative[choice[i]];
    add(leaf, choice);
  }
  for (std::size_t i = 0; i < count; ++i) {
    points[i].memory = memory[i];
    points[i].time = time[i];
  }
}

void append_half_planes(const LaneBlock& block, std::vector<HalfPlane>& planes) {
  for (int l = 0; l < kLanes; ++l) {
    const auto i = static_cast<std::size_t>(l);
    planes.push_back({block.weight_memory[i], block.weight_time[i], block.bound(l) - block.margin(l, 0)});
  }
}

std::vector<BoundLine> bound_lines(const std::vector<HalfPlane>& planes) {
  std::vector<BoundLine> lines;
  for (const HalfPlane& h : planes)
    if (h.weight_time > 0 && h.bound > 0) lines.push_back({h.bound / h.weight_time, h.weight_memory / h.weight_time});
  return upper_envelope(std::move(lines));
}

double time_bound(const std::vector<HalfPlane>& planes, std::int64_t memory) {
  double bound = 0;
  for (const HalfPlane& plane : planes)
    if (plane.weight_time > 0)
      bound = std::max(bound, (plane.bound - plane.weight_memory * static_cast<double>(memory)) / plane.weight_time);
  return bound;
}

CostList within(CostList staircase, std::int64_t limit) {
  if (limit <= 0 || staircase.empty()) return staircase;
  const auto above = std::find_if(staircase.begin(), staircase.end(), [&](const auto& p) { return p.memory > limit; });
  staircase.erase(std::max(above, staircase.begin() + 1), staircase.end());
  return staircase;
}

Certificate certify(const std::vector<HalfPlane>& planes, const CostList& achieved, std::int64_t limit,
                    const CostList& floor) {
  Certificate result;
  if (achieved.empty()) return result;
  double memory_bound = 0;
  for (const HalfPlane& h : planes)
    if (h.weight_time == 0 && h.weight_memory > 0) memory_bound = std::max(memory_bound, h.bound / h.weight_memory);
  const auto lower = [&](double memory) {
    double time = 0;
    for (const HalfPlane& h : planes)
      if (h.weight_time > 0 && (h.weight_memory == 0 || memory < kInfinity))
        time = std::max(time, (h.bound - (h.weight_memory == 0 ? 0 : h.weight_memory * memory)) / h.weight_time);
    return time;
  };
  // Between two achieved memories the bound falls; its value at the right end holds for the whole interval.
  const double first = static_cast<double>(achieved[0].memory);
  memory_bound = std::min(std::floor(memory_bound), first);
  // What holds below some memory holds below any smaller one.
  std::vector<CostPoint> proven(floor.begin(), floor.end());
  std::sort(proven.begin(), proven.end(), [](const CostPoint& a, const CostPoint& b) { return a.memory < b.memory; });
  for (std::size_t i = proven.size(); i-- > 1;) proven[i - 1].time = std::max(proven[i - 1].time, proven[i].time);
  auto next = proven.begin();
  CostList staircase;
  if (memory_bound < first)
    staircase.push_back({static_cast<std::int64_t>(memory_bound), std::min(lower(first), 1e300)});
  for (std::size_t i = 0; i < achieved.size(); ++i) {
    const bool last = i + 1 == achieved.size();
    const double end = !last                        ? static_cast<double>(achieved[i + 1].memory)
                       : limit > achieved[i].memory ? static_cast<double>(limit)
                                                    : kInfinity;
    while (next != proven.end() && static_cast<double>(next->memory) < std::min(end, 0x1p63)) ++next;
    const double bound = std::min(std::max(lower(end), next == proven.end() ? 0 : next->time), achieved[i].time);
    staircase.push_back({achieved[i].memory, bound});
    if (achieved[i].time > 0) result.gap = std::max(result.gap, (achieved[i].time - bound) / achieved[i].time);
    if (last && end < kInfinity) staircase.push_back({limit, std::min(lower(kInfinity), bound)});
  }
  result.lower_bound = reduce(std::move(staircase));
  return result;
}

namespace {

double weighted(const LaneBlock& block, std::size_t lane, double memory, double time) {
  const double wm = block.weight_memory[lane], wt = block.weight_time[lane];
  return (wm > 0 ? wm * memory : 0) + (wt > 0 ? wt * time : 0) - block.bound(static_cast<int>(lane));
}

struct LaneAt {
  std::size_t block = 0, lane = 0;
  double value = kInfinity;  // of the corner, above the bound; infinite where no lane is needed
};

LaneAt best_lane(std::span<const LaneBlock> blocks, double memory, double time) {
  LaneAt best;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double value = weighted(blocks[b], l, memory, time);
      if (value < best.value) best = {b, l, value};
    }
  return best;
}

/// Least time of a plan of less than this memory, by the bounds and by what lists within `open` of `lane` find.
double proven_time(std::span<const LaneBlock> blocks, double memory, const LaneAt& lane, double open) {
  double proven = 0;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t l = 0; l < kLanes; ++l) {
      const double wm = blocks[b].weight_memory[l], wt = blocks[b].weight_time[l];
      if (!(wt > 0) || (wm > 0 && memory == kInfinity)) continue;
      const double more = b == lane.block && l == lane.lane ? open : -blocks[b].margin(static_cast<int>(l), 0);
      proven = std::max(proven, (more + blocks[b].bound(static_cast<int>(l)) - (wm > 0 ? wm * memory : 0)) / wt);
    }
  return proven;
}

/// Corners of the staircase below which a plan is of interest, memory rising.
template <class Visit>
void for_each_corner(const Achieved& achieved, std::int64_t limit, const Improvement& least, Visit visit) {
  const CostList points = achieved.staircase();
  const double end = limit > 0 ? static_cast<double>(limit) + 1 : kInfinity, share = 1 - least.of_time;
  double less_memory = 0, less_time = 0;
  if (const auto& plans = achieved.points(); least.of_ranges > 0 && !plans.empty()) {
    less_memory = least.of_ranges * static_cast<double>(plans.back().memory - plans.front().memory);
    less_time = least.of_ranges * (plans.front().time - plans.back().time);
  }
  visit(std::min(end, points.empty() ? end : share * static_cast<double>(points[0].memory) - less_memory), kInfinity);
  for (std::size_t i = 0; i < points.size() && static_cast<double>(points[i].memory) < end; ++i)
    visit(std::min(end, i + 1 < points.size() ? static_cast<double>(points[i + 1].memory) - less_memory : kInfinity),
          share * points[i].time - less_time);
}

CostPoint floor_at(double memory, double time) {
  return {memory == kInfinity ? std::numeric_limits<std::int64_t>::max() : static_cast<std::int64_t>(memory), time};
}

}  // namespace

Needed slacks(std::span<const LaneBlock> blocks, const Achieved& achieved, std::int64_t limit, const Improvement& least,
              double distance) {
  const bool any = least.of_time <= 0 && least.of_ranges <= 0;
  Needed result;
  result.slack.resize(blocks.size());
  for (Slack& slack : result.slack)
    for (Lanes& lanes : slack) lanes.fill(-kInfinity);
  result.largest = -kInfinity;
  for_each_corner(achieved, limit, least, [&](double memory, double time) {
    const LaneAt best = best_lane(blocks, memory, time);
    const LaneBlock& block = blocks[best.block];
    // Where a plan must improve by something, the bound itself may be proof enough.
    const bool needed = any || best.value + block.margin(static_cast<int>(best.lane), 0) > 0;
    result.corners.push_back({memory, time, best.block, best.lane, needed});
    if (needed) {
      result.largest = std::max(result.largest, best.value);
      Lanes& region = result.slack[best.block][best.lane];
      for (std::size_t l = 0; l < kLanes; ++l) region[l] = std::max({0.0, region[l], weighted(block, l, memory, time)});
    }
    if (time == kInfinity) return;
    // All of what lies below is looked through, or nothing is there.
    const double proven =
        needed && best.value > distance ? std::min(time, proven_time(blocks, memory, best, distance)) : time;
    result.floor.push_back(floor_at(memory, proven));
  });
  for (std::size_t b = 0; b < blocks.size(); ++b)
    for (std::size_t g = 0; g < kLanes; ++g) {
      Lanes& region = result.slack[b][g];
      if (!(region[g] > -kInfinity)) continue;
      region[g] = std::min(region[g], distance);
      for (std::size_t l = 0; l < kLanes; ++l)
        region[l] = region[l] < kNoLimit ? region[l] + blocks[b].margin(static_cast<int>(l), region[l]) : kNoLimit;
    }
  return result;
}

std::optional<std::vector<Slack>> slack_below(std::span<const LaneBlock> blocks, double memory, double time) {
  const LaneAt best = best_lane(blocks, memory, time);
  if (best.value + blocks[best.block].margin(static_cast<int>(best.lane), 0) <= 0) return std::nullopt;
  std::vector<Slack> result(blocks.size());
  for (Slack& slack : result)
    for (Lanes& lanes : slack) lanes.fill(-kInfinity);
  const LaneBlock& block = blocks[best.block];
  Lanes& region = result[best.block][best.lane];
  for (std::size_t l = 0; l < kLanes; ++l) {
    region[l] = std::max(0.0, weighted(block, l, memory, time));
    region[l] = region[l] < kNoLimit ? region[l] + block.margin(static_cast<int>(l), region[l]) : kNoLimit;
  }
  return result;
}

void append_floor(const Needed& needed, const ListTable& lowest, CostList& floor) {
  // What lists leave out lies above needed.floor, what they have above `lowest`: less of the two holds for both.
  CostList pairs = needed.floor, corners;
  for (std::size_t i = 0; i < lowest.points(); ++i) {
    corners.push_back({lowest.memory[i], lowest.time[i]});
    pairs.push_back({lowest.memory[i], 0});
  }
  // What holds below some memory holds below any smaller one.
  std::sort(pairs.begin(), pairs.end(), [](const CostPoint& a, const CostPoint& b) { return a.memory < b.memory; });
  for (std::size_t i = pairs.size(); i-- > 1;) pairs[i - 1].time = std::max(pairs[i - 1].time, pairs[i].time);
  for (const CostPoint& pair : pairs)
    floor.push_back({pair.memory, std::min(pair.time, time_at(corners, pair.memory - 1))});
}

}  // namespace turnpoint::frontier::detail
