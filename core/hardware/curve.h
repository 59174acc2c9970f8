// SPDX-License-Identifier: Apache-2.0
// Reading a measured curve, time by size, at sizes that were not measured.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace turnpoint {

/// How a measured curve is read between its sizes (resources/manual/mathematics.md, 1.6): the bandwidth or the time is
/// linear in the bytes.
enum class Interpolation : std::uint8_t { time, bandwidth };
const char* to_string(Interpolation interpolation);
std::optional<Interpolation> parse_interpolation(std::string_view name);

struct CurvePoint {
  double bytes = 0, time_s = 0;
};

/// Time at `bytes` of a curve with rising, distinct sizes (at least one). Never forced monotone: real curves have
/// plateaus and steps where the algorithm changes. Beyond the ends:
///  - above: the bandwidth of the largest sample, since the slope between two samples may be a plateau's, which would
///    promise boundless bandwidth;
///  - below, reading bandwidth: the bandwidth of the smallest sample, as the paper does; reading time: the line through
///    the two smallest samples, held between proportional and constant, because small messages cost latency. A single
///    sample is split into `latency_s` (at most all of it) and a part in proportion to the bytes.
double curve_time(std::span<const CurvePoint> curve, double bytes, Interpolation interpolation, double latency_s = 0);

}  // namespace turnpoint
