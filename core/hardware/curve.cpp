// SPDX-License-Identifier: Apache-2.0
#include "core/hardware/curve.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace turnpoint {

const char* to_string(Interpolation interpolation) {
  return interpolation == Interpolation::time ? "time" : "bandwidth";
}

std::optional<Interpolation> parse_interpolation(std::string_view name) {
  for (const auto interpolation : {Interpolation::time, Interpolation::bandwidth})
    if (name == to_string(interpolation)) return interpolation;
  return std::nullopt;
}

namespace {

double below_first(std::span<const CurvePoint> curve, double bytes, Interpolation interpolation, double latency_s) {
  const CurvePoint& first = curve.front();
  const double proportional = first.time_s * bytes / first.bytes;
  if (interpolation == Interpolation::bandwidth) return proportional;
  if (curve.size() == 1) {
    const double latency = std::clamp(latency_s, 0.0, first.time_s);
    return latency + (first.time_s - latency) * bytes / first.bytes;
  }
  const double slope = (curve[1].time_s - first.time_s) / (curve[1].bytes - first.bytes);
  return std::clamp(first.time_s - slope * (first.bytes - bytes), proportional, first.time_s);
}

}  // namespace

double curve_time(std::span<const CurvePoint> curve, double bytes, Interpolation interpolation, double latency_s) {
  assert(!curve.empty());
  const auto above = std::lower_bound(curve.begin(), curve.end(), bytes,
                                      [](const CurvePoint& point, double b) { return point.bytes < b; });
  if (above == curve.end()) return curve.back().time_s * bytes / curve.back().bytes;
  if (above->bytes == bytes) return above->time_s;
  if (above == curve.begin()) return below_first(curve, bytes, interpolation, latency_s);
  const auto below = std::prev(above);
  const double share = (bytes - below->bytes) / (above->bytes - below->bytes);
  if (interpolation == Interpolation::time) return below->time_s + share * (above->time_s - below->time_s);
  const double from = below->bytes / below->time_s, to = above->bytes / above->time_s;
  return bytes / (from + share * (to - from));
}

}  // namespace turnpoint
