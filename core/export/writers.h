// SPDX-License-Identifier: Apache-2.0
// What the formats write, for whoever has a plan in hand; core/export/format.h lists the formats.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/plan/placement_plan.h"
#include "core/plan/result.h"
#include "core/plan_io/plan_read.h"

namespace turnpoint {

std::string write_points_csv(const Result& result);                      ///< one row per point
std::string write_plan_csv(const Scenario& scenario, const Plan& plan);  ///< one row per operator
std::string write_plan_csv(const PlanAlone& alone);                      ///< where it has the parts of costs
std::string write_plan_dot(const Scenario& scenario, const Plan& plan);  ///< Graphviz, coloured by configuration
std::string write_plan_svg(const Scenario& scenario, const Plan& plan);  ///< own layered drawing

/// A row per task: where it runs, from when to when, and what it holds.
Expected<std::string> write_placement_csv(const PlacementPlan& plan);
/// For chrome://tracing and Perfetto.
Expected<std::string> write_placement_trace(const PlacementPlan& plan);
/// Graphviz, a colour per device. Usage error above kMostDotTasks tasks, which nothing draws.
Expected<std::string> write_placement_dot(const PlacementPlan& plan);
inline constexpr std::size_t kMostDotTasks = 5000;

}  // namespace turnpoint
