// SPDX-License-Identifier: Apache-2.0
// A plan and an operator of it in words.
#pragma once

#include <QString>
#include <vector>

#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint::views {

/// What it resembles (core/plan/resemblance.h), then by axes: "Data parallel 4 × tensor parallel 2. Column parallel in 72
/// operators, row parallel in 24. 46% of compute runs batch yx · out-channel z, 29% batch yxz."
QString describe_plan(const Plan& plan, const Model& model);

struct Fact {
  QString name, value;
};
/// Kind, splits, weight, cost of one operator under the plan.
std::vector<Fact> describe_operator(const Plan& plan, const Model& model, OperatorId op);

}  // namespace turnpoint::views
