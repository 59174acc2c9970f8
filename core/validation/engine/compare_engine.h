// SPDX-License-Identifier: Apache-2.0
// What was predicted of a plan's step beside what an engine measured of it.
//
// Measured: the step as the median of the timed steps, each being that of its slowest rank; collectives by kind and the
// ranks that make them together, counted in one step; bytes of tensors on the rank that has most; the loss. An engine
// overlaps collectives with computing, so that neither has a time of its own: execution, network, operators and single
// collectives are modelled. Predicted: the plan's own items, as for other runs (core/validation/compare.h).
#pragma once

#include <vector>

#include "core/base/expected.h"
#include "core/validation/compare.h"
#include "core/validation/engine/engine_step.h"

namespace turnpoint {

/// The collectives of a plan's iteration as one rank makes them, by kind and ranks. `with_loss` false: without what a
/// loss sums of its rows, of which `loss_bytes`, if given, receives the bytes.
std::vector<EngineCollective> planned_collectives(const Scenario& scenario, const Plan& plan, bool with_loss,
                                                  double* loss_bytes = nullptr);

/// `plan` priced for `scenario`. Error: the measurement is of another number of ranks.
Expected<ValidationReport> compare_engine(const Engine& engine, const Scenario& scenario, const Plan& plan,
                                          const EngineMeasurement& measurement, const CompareLabels& labels);

}  // namespace turnpoint
