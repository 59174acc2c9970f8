// SPDX-License-Identifier: Apache-2.0
#include "gpu_probe/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace turnpoint::probe {

Spread spread_of(std::vector<double> times) {
  Spread spread;
  if (times.empty()) return spread;
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(times.size() - 1);
    const auto below = static_cast<std::size_t>(std::floor(place));
    const std::size_t above = std::min(below + 1, times.size() - 1);
    return times[below] + (place - static_cast<double>(below)) * (times[above] - times[below]);
  };
  return {times.front(), at(0.25), at(0.5), at(0.75), static_cast<int>(times.size())};
}

bool enough(const std::vector<double>& times, double elapsed_s, double item_s) {
  const auto n = static_cast<int>(times.size());
  if (n >= kMostSamples) return true;
  if (elapsed_s >= 4 * item_s && n >= 1) return true;
  if (elapsed_s >= item_s && n >= 3) return true;
  return n >= 10 && spread_of(times).relative() < 0.01;
}

bool settled(const std::vector<double>& times) {
  constexpr std::size_t kLeast = 20;         // five beyond each quartile
  constexpr std::size_t kBetweenLooks = 10;  // a look sorts them all
  if (times.size() < kLeast || times.size() % kBetweenLooks != 0) return false;
  return 0.93 * spread_of(times).relative() / std::sqrt(static_cast<double>(times.size())) < 0.005;
}

}  // namespace turnpoint::probe
