// SPDX-License-Identifier: Apache-2.0
// Writers of placements for other programs and people.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/plan/placement_plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// turnpoint/plan@1 of kind placement: the keys of turnpoint/placement@1, which placement readers find in it, beside
/// the model, the hardware and what the simulator says.
std::string write_placement_plan(const Scenario& scenario, const PlacementPlan& plan);
/// A row per task: where it runs, from when to when, and what it holds.
Expected<std::string> write_placement_csv(const PlacementPlan& plan);
/// For chrome://tracing and Perfetto.
Expected<std::string> write_placement_trace(const PlacementPlan& plan);
/// Graphviz, a colour per device. Usage error above kMostDotTasks tasks, which nothing draws.
Expected<std::string> write_placement_dot(const PlacementPlan& plan);
inline constexpr std::size_t kMostDotTasks = 5000;

}  // namespace turnpoint
