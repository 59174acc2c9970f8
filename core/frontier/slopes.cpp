// SPDX-License-Identifier: Apache-2.0
#include "core/frontier/slopes.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::frontier::detail {

void choose_weights(const Achieved& achieved, std::size_t count, std::vector<double>& memory,
                    std::vector<double>& time) {
  const auto& points = achieved.points();
  const double range_m = std::max(1.0, static_cast<double>(points.back().memory - points.front().memory));
  double range_t = points.front().time - points.back().time;
  if (!(range_t > 0)) range_t = std::max(points.front().time, 1e-300);
  memory.assign({1 / range_m, 0});
  time.assign({0, 1 / range_t});
  const auto add = [&](double dm, double dt) {  // weights of a line along (dm, -dt)
    const double u = dm / range_m, w = dt / range_t;
    memory.push_back(w / (u + w) / range_m);
    time.push_back(u / (u + w) / range_t);
  };
  // Just off the ends: the fastest of the smallest plans, and the smallest of the fastest.
  add(range_m, range_t * 0x1p-14);
  add(range_m * 0x1p-14, range_t);
  struct Chord {
    double dm, dt, length;
  };
  std::vector<Chord> chords;
  const std::vector<std::size_t> hull = achieved.hull();
  double total = 0;
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const Point &a = points[hull[i - 1]], &b = points[hull[i]];
    Chord c{static_cast<double>(b.memory - a.memory), a.time - b.time, 0};
    c.length = std::hypot(c.dm / range_m, c.dt / range_t);
    total += c.length;
    chords.push_back(c);
  }
  const std::size_t wanted = count - memory.size();
  if (chords.empty()) {
    for (std::size_t i = 0; i < wanted; ++i) add(range_m * std::exp2(double(i) - double(wanted) / 2), range_t);
    return;
  }
  if (chords.size() <= wanted) {
    for (const Chord& c : chords) add(c.dm, c.dt);
    // The rest lies between neighbouring slopes, where new corners of the hull can still hide.
    for (std::size_t i = 0; memory.size() < count; ++i) {
      const Chord &a = chords[i % chords.size()], &b = chords[(i + 1) % chords.size()];
      const double f = 0.5 / double(1 + i / chords.size()),
                   steepen = i % chords.size() + 1 == chords.size() ? 4.0 * double(1 + i / chords.size()) : 1;
      add((a.dm / a.length * f + b.dm / b.length * (1 - f)) * steepen, a.dt / a.length * f + b.dt / b.length * (1 - f));
    }
    return;
  }
  double position = 0, next = 0.5;
  for (const Chord& c : chords) {
    position += double(wanted) * 0.5 * (c.length / total + 1 / double(chords.size()));
    while (next < position && memory.size() < count) {
      add(c.dm, c.dt);
      next += 1;
    }
  }
  while (memory.size() < count) add(chords.back().dm, chords.back().dt);
}

namespace {

constexpr double kSteeper = 16;  // beyond the last chord

/// A slope that is wanted, and those up to which others around it are.
struct SlopeAt {
  double own = 0, steeper = 0, flatter = 0;
};

/// Both ends, then these slopes and others around each; `range_m` and `range_t` are what is 1 of either.
void add_slopes(std::span<const SlopeAt> slopes, std::size_t count, double range_m, double range_t,
                std::vector<double>& memory, std::vector<double>& time) {
  memory.assign({1 / range_m, 0});
  time.assign({0, 1 / range_t});
  const auto add = [&](double s) {
    memory.push_back(s / (1 + s) / range_m);
    time.push_back(1 / (1 + s) / range_t);
  };
  slopes = slopes.first(std::min(slopes.size(), count - memory.size()));
  for (std::size_t k = 0; k < slopes.size(); ++k) {
    const auto& [own, steeper, flatter] = slopes[k];
    const std::size_t left = (count - memory.size()) / (slopes.size() - k) - 1, half = left / 2;
    add(own);
    for (std::size_t i = 1; i <= half; ++i) add(own * std::pow(steeper / own, double(i) / double(half)));
    for (std::size_t i = 1; i <= left - half; ++i) add(own * std::pow(flatter / own, double(i) / double(left - half)));
  }
}

}  // namespace

bool weights_at(const Achieved& achieved, std::span<const std::int64_t> limits, std::size_t count,
                std::vector<double>& memory, std::vector<double>& time) {
  const auto& points = achieved.points();
  const std::vector<std::size_t> hull = achieved.hull();
  const double range_m = static_cast<double>(points.back().memory - points.front().memory),
               range_t = points.front().time - points.back().time;
  const auto slope = [&](std::size_t corner) {  // of the chord that ends there, both ranges 1
    const Point &a = points[hull[corner - 1]], &b = points[hull[corner]];
    return (a.time - b.time) / range_t / (static_cast<double>(b.memory - a.memory) / range_m);
  };
  std::vector<SlopeAt> slopes;
  for (const std::int64_t limit : limits) {
    const auto above = corner_above(points, hull, limit);
    if (!above) continue;
    const double own = slope(*above);
    slopes.push_back({own, *above > 1 ? slope(*above - 1) : own * kSteeper,
                      *above + 1 < hull.size() ? slope(*above + 1) : own / kSteeper});
  }
  if (slopes.empty()) return false;
  add_slopes(slopes, count, range_m, range_t, memory, time);
  return true;
}

void weights_along(std::span<const BoundLine> lines, std::span<const std::int64_t> limits, std::size_t count,
                   std::vector<double>& memory, std::vector<double>& time) {
  const double range_m = 1 / memory[0], range_t = 1 / time[1];
  std::vector<BoundLine> sloped(lines.begin(), lines.end());
  std::erase_if(sloped, [](const BoundLine& line) { return !(line.per_byte > 0); });
  if (sloped.empty()) return;
  const auto slope = [&](std::size_t i) { return sloped[i].per_byte * range_m / range_t; };
  std::vector<SlopeAt> slopes;
  for (const std::int64_t limit : limits) {
    std::size_t at = 0;
    for (std::size_t i = 1; i < sloped.size(); ++i)
      if (time_above({&sloped[i], 1}, static_cast<double>(limit)) >
          time_above({&sloped[at], 1}, static_cast<double>(limit)))
        at = i;
    const double own = slope(at);
    slopes.push_back(
        {own, at > 0 ? slope(at - 1) : own * kSteeper, at + 1 < sloped.size() ? slope(at + 1) : own / kSteeper});
  }
  add_slopes(slopes, count, range_m, range_t, memory, time);
}

void open_chords(const std::vector<HalfPlane>& planes, const Achieved& achieved, std::size_t count, double share,
                 std::vector<double>& memory, std::vector<double>& time, Distance distance) {
  constexpr int kSamples = 8;
  const auto& points = achieved.points();
  const double range_m = std::max(1.0, static_cast<double>(points.back().memory - points.front().memory)),
               range_t = std::max(1e-300, points.front().time - points.back().time);
  struct Chord {
    double depth, weight_memory, weight_time;
  };
  std::vector<Chord> open;
  const std::vector<std::size_t> hull = achieved.hull();
  for (std::size_t i = 1; i < hull.size(); ++i) {
    const Point &a = points[hull[i - 1]], &b = points[hull[i]];
    const double u = static_cast<double>(b.memory - a.memory) / range_m, w = (a.time - b.time) / range_t;
    if (distance == Distance::of_ranges && std::max(u, w) <= share) continue;
    double depth = 0;
    const int ends = distance == Distance::of_time;
    for (int s = 1 - ends; s < kSamples + ends; ++s) {
      const double f = double(s) / kSamples, m = static_cast<double>(a.memory) + f * u * range_m;
      double lower = 0;
      for (const HalfPlane& h : planes)
        if (h.weight_time > 0) lower = std::max(lower, (h.bound - h.weight_memory * m) / h.weight_time);
      const double upright = a.time - f * w * range_t - lower;
      // Of ranges: turned to the distance from the chord.
      depth = std::max(depth, distance == Distance::of_ranges ? upright / range_t * u / std::hypot(u, w)
                                                              : upright / std::max(1e-300, b.time));
    }
    if (depth > share) open.push_back({depth, w / (u + w) / range_m, u / (u + w) / range_t});
  }
  std::stable_sort(open.begin(), open.end(), [](const Chord& x, const Chord& y) { return x.depth > y.depth; });
  if (open.size() > count) open.resize(count);
  for (const Chord& c : open) {
    memory.push_back(c.weight_memory);
    time.push_back(c.weight_time);
  }
}

}  // namespace turnpoint::frontier::detail
