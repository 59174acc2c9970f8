// SPDX-License-Identifier: Apache-2.0
// What a run of operators of a pipeline costs: for one micro-batch, and once an iteration.
#pragma once

#include <vector>

#include "core/cost/breakdown.h"
#include "core/cost/operator_cost.h"
#include "core/plan/plan.h"

namespace turnpoint::search {

inline double seconds(const std::vector<ReshardStep>& steps) {
  double sum = 0;
  for (const auto& step : steps) sum += step.time_s;
  return sum;
}

/// One micro-batch of a run of operators, and what happens once an iteration. Times in seconds.
struct PipelinePart {
  double forward_compute = 0, forward_network = 0, backward_compute = 0, backward_network = 0;
  double again_compute = 0;  ///< of backward_compute: operators that run again by themselves
  double once_compute = 0, once_network = 0;
  CostBreakdown forward_steps, backward_steps, once_steps;  ///< the network times above by collective
  CostBreakdown held;                                       ///< parameters, gradients, optimizer state
  CostBreakdown kept;                                       ///< what backward reads of one micro-batch
  double forward() const { return forward_compute + forward_network; }
  double backward() const { return backward_compute + backward_network; }

  PipelinePart& operator+=(const PipelinePart& b) {
    forward_compute += b.forward_compute, forward_network += b.forward_network;
    backward_compute += b.backward_compute, backward_network += b.backward_network;
    again_compute += b.again_compute, once_compute += b.once_compute, once_network += b.once_network;
    forward_steps += b.forward_steps, backward_steps += b.backward_steps, once_steps += b.once_steps;
    held += b.held, kept += b.kept;
    return *this;
  }

  void add_parameters(const ParameterSteps& steps, Update update) {
    for (const ReshardStep& step : steps.gather) {
      forward_network += step.time_s / 2;  // as often before forward as before backward
      backward_network += step.time_s / 2;
      forward_steps[NetworkPart::all_gather] += step.time_s / 2;
      backward_steps[NetworkPart::all_gather] += step.time_s / 2;
    }
    const bool each = sums_every_micro_batch(update);
    for (const ReshardStep& step : steps.sync) (each ? backward_network : once_network) += step.time_s;
    add_network(each ? backward_steps : once_steps, steps.sync);
    for (const ReshardStep& step : steps.spread) once_network += step.time_s;
    add_network(once_steps, steps.spread);
  }
};

}  // namespace turnpoint::search
