// SPDX-License-Identifier: Apache-2.0
// A rank that is to be slower than it is: behind what it has computed it waits busily, for as much longer as it was
// told to take. A core that spins is as busy as one that computes, which is what a slower device would be.
#pragma once

#include "gpu_probe/measure/loop.h"
#include "gpu_probe/step/values/place.h"

namespace turnpoint::step {

/// `slowness`: as a multiple of the time since `since`; 1: returns at once. Of the host's clock alone.
inline void slow_down(const Moment& since, double slowness) {
  if (slowness <= 1) return;
  const double passed = moment().seconds - since.seconds, until = since.seconds + slowness * passed;
  while (moment().seconds < until) {
  }
}

}  // namespace turnpoint::step
