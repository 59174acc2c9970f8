// SPDX-License-Identifier: Apache-2.0
// A ratio plan and an operator of it in words.
#pragma once

#include <QString>
#include <vector>

#include "core/plan/ratio_plan.h"
#include "views/plan/plan_words.h"

namespace turnpoint::views {

/// "8 devices cut in two at 3 levels. ① gives 4 × V100-16GB 32 %, 4 × A100-80GB 68 %."
QString describe_ratio(const RatioPlan& plan, const Scenario& scenario);
/// What an operator gives the first half of every cut on the way to the first device.
std::vector<Fact> describe_shares(const RatioPlan& plan, const Scenario& scenario, OperatorId op);

}  // namespace turnpoint::views
