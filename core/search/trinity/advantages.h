// SPDX-License-Identifier: Apache-2.0
// What an iteration's rollouts did, measured against what was usual: the rewards become advantages.
#pragma once

#include <cstddef>
#include <vector>

#include "core/search/trinity/surrogate.h"

namespace turnpoint::trinity {

struct Rewarded {
  double reward = 0;
  bool fits = true;
};

struct Advantages {
  std::vector<double> of_rollout;
  double mean_reward = 0;  ///< of those that fit; 0 where none does
  std::size_t failed = 0;
};

/// What does not fit has its reward but moves no baseline. `scaled`: divided by the batch's deviation, so that gains of
/// a hundredth count, and bounded.
Advantages advantages(const std::vector<Rewarded>& batch, bool scaled, MovingBaseline& baseline);

}  // namespace turnpoint::trinity
