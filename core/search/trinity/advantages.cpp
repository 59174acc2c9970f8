// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/advantages.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::trinity {

Advantages advantages(const std::vector<Rewarded>& batch, bool scaled, MovingBaseline& baseline) {
  Advantages made;
  double scale = 1, sum = 0, square = 0;
  for (const Rewarded& one : batch)
    if (one.fits)
      sum += one.reward;
    else
      ++made.failed;
  const double fitting = double(batch.size() - made.failed);
  if (fitting > 0) {
    made.mean_reward = sum / fitting;
    baseline.add(made.mean_reward);
    for (const Rewarded& one : batch)
      if (one.fits) square += (one.reward - made.mean_reward) * (one.reward - made.mean_reward);
    if (scaled) scale = std::max(1e-4, std::sqrt(square / fitting));
  }
  // Where most fail, what fails must not drown what fits.
  constexpr double kMostAdvantage = 5, kFailingAdvantage = -1;
  for (const Rewarded& one : batch) {
    // Where nothing ever fitted there is nothing to compare with.
    double advantage = baseline.empty() ? 0 : (one.reward - baseline.value()) / scale;
    if (scaled) advantage = std::clamp(advantage, one.fits ? -kMostAdvantage : kFailingAdvantage, kMostAdvantage);
    made.of_rollout.push_back(advantage);
  }
  if (!scaled || made.failed == 0 || fitting == 0) return made;
  // What fits is to be encouraged, also where it is the exception.
  double mean = 0;
  for (const double one : made.of_rollout) mean += one / double(batch.size());
  for (double& one : made.of_rollout) one -= mean;
  return made;
}

}  // namespace turnpoint::trinity
