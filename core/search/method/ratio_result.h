// SPDX-License-Identifier: Apache-2.0
// A ratio plan as a method's answer.
#pragma once

#include <memory>

#include "core/plan/ratio_plan.h"
#include "core/plan/result.h"

namespace turnpoint::search {

/// One point, judged by each device's own memory, which the first explanation tells. Names are the caller's to give.
std::shared_ptr<Result> result_of(const ScenarioPtr& scenario, RatioPlan&& plan);

}  // namespace turnpoint::search
