// SPDX-License-Identifier: Apache-2.0
// Steps between the ticks of an axis.
#pragma once

#include <cmath>

namespace turnpoint::views {

/// 1, 2, 2.5 or 5 times a power of ten, at least `least`; 1 where that is not positive.
inline double round_tick_step(double least) {
  if (!(least > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double digit : {1.0, 2.0, 2.5, 5.0})
    if (digit * power >= least * (1 - 1e-12)) return digit * power;
  return 10 * power;
}

}  // namespace turnpoint::views
