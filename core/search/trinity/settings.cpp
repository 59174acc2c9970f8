// SPDX-License-Identifier: Apache-2.0
// Settings of learning: those that are printed, the predecessor's, and what a budget has to be.
#include <algorithm>
#include <cmath>

#include "core/search/trinity/trainer.h"

namespace turnpoint::trinity {

Expected<void> Budget::check() const {
  if (!calls && !iterations && !seconds) return usage_error("learning needs a budget: calls, iterations or seconds");
  if ((calls && *calls == 0) || (iterations && *iterations == 0) || (seconds && !(*seconds > 0)))
    return usage_error("a budget of zero learns nothing");
  return {};
}

Expected<void> Settings::check() const {
  if (auto good = weights.check(); !good) return good.error();
  if (auto good = budget.check(); !good) return good.error();
  if (rollouts == 0 || groups == 0 || hidden == 0)
    return usage_error("learning needs at least one rollout, one group and one hidden number");
  if (!(strays > 0) || !std::isfinite(strays))
    return usage_error("the units that are not where they lean must be a number above 0");
  return {};
}

Settings printed_settings() {
  Settings s;
  s.learning.joint = true;
  s.learning.entropy = 0.01;
  s.groups = 256;
  s.hidden = 256;
  s.own_width = 0;
  s.rollouts = 10;
  s.rate = 0.1;
  s.clipping = {5, 10};
  s.scaled_advantage = false;
  s.fading_entropy = false;
  s.reads_group = false;
  s.imitation = 0;
  s.joined_groups = false;
  s.refined_every = 0;
  s.shared_credit = false;
  s.failing_seconds = 100;
  return s;
}

Settings hierarchical_settings(std::uint32_t devices) {
  Settings s = printed_settings();
  s.reward = RewardKind::runtime;
  s.learning.clipped = false;
  s.learning.joint = false;
  s.learning.entropy = 0;
  s.groups = std::min<std::size_t>(256, 20 * std::size_t(devices));
  s.hidden = 64;
  s.epochs = 1;
  s.rate = 2e-3;
  s.baseline_n = 19;  // 0.9 of the baseline before, as its controller has it
  return s;
}

}  // namespace turnpoint::trinity
