// SPDX-License-Identifier: Apache-2.0
// Repeated times of one item, and when there are enough of them.
#pragma once

#include <vector>

namespace turnpoint::probe {

struct Spread {
  double least = 0, q1 = 0, median = 0, q3 = 0;
  int samples = 0;
  /// (q3 - q1) / median.
  double relative() const { return median > 0 ? (q3 - q1) / median : 0; }
};

/// Quartiles by linear interpolation between the sorted times.
Spread spread_of(std::vector<double> times);

/// Ten samples within 1 %, or the time is up; at least three, unless one alone takes four times what an item may.
bool enough(const std::vector<double>& times, double elapsed_s, double item_s);

/// Whether the median is known to half a per cent, where what disturbs falls on samples by chance: its standard error is
/// 0.93 (q3 - q1) / sqrt(samples), that of normally distributed times. At least twenty samples.
bool settled(const std::vector<double>& times);

/// Above this a time is marked as noisy.
inline constexpr double kNoisy = 0.05;
inline constexpr int kWarmUps = 3, kMostSamples = 2000;

}  // namespace turnpoint::probe
