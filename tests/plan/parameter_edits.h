// SPDX-License-Identifier: Apache-2.0
// Plans made wrong or poorer on purpose: the steps over an operator's parameters.
#pragma once

#include "core/plan/plan.h"

namespace turnpoint::test {

/// The list that holds the last of an operator's steps over parameters; null where it has none.
inline std::vector<ReshardStep>* last_steps(PlanOperator& op) {
  std::vector<ReshardStep>* last = nullptr;
  for (ParameterSteps& group : op.parameters)
    for (const ParameterRole role : kParameterRoles)
      if (!group.steps(role).empty()) last = &group.steps(role);
  return last;
}

/// Calls `edit(std::vector<ReshardStep>&)` with every list, in the order of an iteration.
template <class Edit>
void each_list(PlanOperator& op, const Edit& edit) {
  for (ParameterSteps& group : op.parameters)
    for (const ParameterRole role : kParameterRoles) edit(group.steps(role));
}

}  // namespace turnpoint::test
