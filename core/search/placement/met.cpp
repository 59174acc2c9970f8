// SPDX-License-Identifier: Apache-2.0
#include "core/search/placement/met.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace turnpoint::placement {
namespace {

bool beats_or_equals(const Met::Point& a, const Met::Point& b) {
  return a.bytes <= b.bytes && a.makespan_s <= b.makespan_s;
}

bool same_figures(const Met::Point& a, const Met::Point& b) {
  return a.bytes == b.bytes && a.makespan_s == b.makespan_s;
}

}  // namespace

bool Met::wanted(std::int64_t bytes, double makespan_s) const {
  return std::none_of(points_.begin(), points_.end(), [&](const Point& known) {
    return known.bytes <= bytes && known.makespan_s <= makespan_s &&
           (known.bytes != bytes || known.makespan_s != makespan_s);
  });
}

bool Met::wants(std::int64_t bytes, double makespan_s) const {
  const std::lock_guard lock(mutex_);
  return wanted(bytes, makespan_s);
}

void Met::offer(Point point) {
  const std::lock_guard lock(mutex_);
  if (!wanted(point.bytes, point.makespan_s)) return;
  for (Point& known : points_) {
    if (!same_figures(known, point)) continue;
    // Of equal ones always the same, whichever thread comes first.
    if (std::tie(point.placement.device, point.placement.order) <
        std::tie(known.placement.device, known.placement.order))
      known = std::move(point);
    return;
  }
  std::erase_if(points_, [&](const Point& known) { return beats_or_equals(point, known); });
  const auto at = std::lower_bound(points_.begin(), points_.end(), point.bytes,
                                   [](const Point& known, std::int64_t bytes) { return known.bytes < bytes; });
  points_.insert(at, std::move(point));
  if (points_.size() > kMost) thin_out();
}

/// The ends stay. Whoever wants what is dropped takes the next one below in memory and loses its advantage in time.
void Met::thin_out() {
  std::size_t least = 0;
  double missed = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i + 1 < points_.size(); ++i) {
    const double time = points_[i - 1].makespan_s - points_[i].makespan_s;
    const double area = time * double(points_[i + 1].bytes - points_[i].bytes);
    if (area >= missed) continue;
    missed = area;
    least = i;
  }
  points_.erase(points_.begin() + std::ptrdiff_t(least));
}

std::int64_t Met::least_bytes_within(double makespan_s) const {
  const std::lock_guard lock(mutex_);
  for (const Point& known : points_)
    if (known.makespan_s <= makespan_s) return known.bytes;
  return std::numeric_limits<std::int64_t>::max();
}

std::vector<Met::Point> Met::points() const {
  const std::lock_guard lock(mutex_);
  return points_;
}

}  // namespace turnpoint::placement
