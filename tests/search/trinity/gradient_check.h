// SPDX-License-Identifier: Apache-2.0
// Derivatives against central differences, in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/search/placement/random.h"

namespace turnpoint::test {

inline std::vector<double> random_numbers(placement::Random& random, std::size_t n, double scale = 1) {
  std::vector<double> made(n);
  for (double& one : made) one = scale * (2 * random.unit() - 1);
  return made;
}

/// Largest difference between `derivative` and the central difference of `loss` by each of `values`, over the larger
/// of 1 and their size. Leaves `values` as they were.
inline double gradient_error(std::vector<double>& values, const std::vector<double>& derivative,
                             const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  double worst = values.size() == derivative.size() ? 0 : 1e9;
  for (std::size_t i = 0; i < std::min(values.size(), derivative.size()); ++i) {
    const double before = values[i];
    values[i] = before + kStep;
    const double above = loss();
    values[i] = before - kStep;
    const double below = loss();
    values[i] = before;
    const double difference = (above - below) / (2 * kStep);
    worst = std::max(worst, std::abs(difference - derivative[i]) / std::max(1.0, std::abs(difference)));
  }
  return worst;
}

/// What makes a scalar of many numbers, so that each has a derivative of its own.
inline double weighed(const std::vector<double>& weights, const double* values) {
  double sum = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

}  // namespace turnpoint::test
