// SPDX-License-Identifier: Apache-2.0
#include "core/search/trinity/reward.h"

#include <algorithm>
#include <cmath>

namespace turnpoint::trinity {

Expected<void> RewardWeights::check() const {
  for (const double weight : {runtime, communication, memory})
    if (!(weight >= 0) || !std::isfinite(weight)) return usage_error("a weight of the reward is below zero");
  if (runtime + communication + memory <= 0) return usage_error("every weight of the reward is zero");
  if (!(communication_tolerance > 0)) return usage_error("the tolerance for communication must be above zero bytes");
  if (!(memory_tolerance > 0)) return usage_error("the tolerance for memory must be above zero bytes");
  return {};
}

double trinity_reward(const RewardWeights& weights, double seconds, double communication_bytes, double memory_bytes) {
  constexpr double kGigabyte = 1e9, kGuard = 1e-9;
  const double communication = std::max(0.0, communication_bytes - weights.communication_tolerance) / kGigabyte;
  const double memory = std::max(0.0, memory_bytes - weights.memory_tolerance) / kGigabyte;
  return -std::log(
      std::max(kGuard, weights.runtime * seconds + weights.communication * communication + weights.memory * memory));
}

double runtime_reward(double seconds) { return -std::sqrt(seconds); }

}  // namespace turnpoint::trinity
