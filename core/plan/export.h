// SPDX-License-Identifier: Apache-2.0
// Writers of plans and results for other programs and people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/plan/result.h"

namespace turnpoint {

nlohmann::json write_plan(const Scenario& scenario, const Plan& plan);   ///< turnpoint/plan@1
std::string write_points_csv(const Result& result);                      ///< one row per point
std::string write_plan_csv(const Scenario& scenario, const Plan& plan);  ///< one row per operator
std::string write_plan_dot(const Scenario& scenario, const Plan& plan);  ///< Graphviz, coloured by configuration
std::string write_plan_svg(const Scenario& scenario, const Plan& plan);  ///< own layered drawing
std::string write_frontier_svg(const Result& result);                    ///< the chart without a window

}  // namespace turnpoint
