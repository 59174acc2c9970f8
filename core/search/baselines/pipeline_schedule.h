// SPDX-License-Identifier: Apache-2.0
// When the steps of a pipeline end. A step starts when its stage is free and what it waits for has ended: a forward on
// the run before, a backward on the run behind. With equal stages the last one ends at (m + p - 1)(f + b), with v runs
// on each of them, of f and b together, at (m + (p - 1) / v)(f + b). So it does where all forwards come first.
#pragma once

#include <span>
#include <vector>

namespace turnpoint::search {

/// One micro-batch on one stage, seconds; receiving its input (or its output's gradient) included.
struct StageTimes {
  double forward = 0, backward = 0;
};

/// When each stage ends its last backward. `runs`: in the order in which a micro-batch passes through them, `chunks` of
/// them on each stage (core/plan/pipeline_order.h, as are `forwards_first`); `micro_batches` >= 1, with chunks a
/// multiple of the stages.
std::vector<double> ends_of_passes(std::span<const StageTimes> runs, int micro_batches, int chunks = 1,
                                   bool forwards_first = false);

}  // namespace turnpoint::search
