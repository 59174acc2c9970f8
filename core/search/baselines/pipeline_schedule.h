// SPDX-License-Identifier: Apache-2.0
// The 1F1B pipeline schedule (PipeDream-Flush; Narayanan et al. 2021, arXiv 2104.04473, section 2.2.1): stage s of p
// runs min(p - 1 - s, m) forwards, then one forward and one backward in turn, then the backwards that are left. A task
// starts when its stage is free and what it waits for has ended: a forward on the stage before, a backward on the stage
// behind. With equal stages the last task ends at (m + p - 1)(f + b).
#pragma once

#include <span>
#include <vector>

namespace turnpoint::search {

/// One micro-batch on one stage, seconds; receiving its input (or its output's gradient) included.
struct StageTimes {
  double forward = 0, backward = 0;
};

/// When each stage ends its last backward. `micro_batches` >= 1.
std::vector<double> one_forward_one_backward(std::span<const StageTimes> stages, int micro_batches);

/// Micro-batches whose activations stage `stage` of `stages` holds at most.
int in_flight(int stage, int stages, int micro_batches);

}  // namespace turnpoint::search
