// SPDX-License-Identifier: Apache-2.0
// What a placement method answers for one point: the task graph it placed and a device per task (design.md 2,
// "placement"). The data beside core/plan/plan.h's sharding plan.
#pragma once

#include <memory>
#include <vector>

#include "core/base/ids.h"
#include "core/model/placement.h"
#include "core/model/task_graph.h"

namespace turnpoint {

struct PlacementPlan {
  TaskGraphPtr graph;
  Placement placement;
  std::vector<OperatorId> operator_of;  ///< by task; empty where the graph was not made of a Model
};
using PlacementPlanPtr = std::shared_ptr<const PlacementPlan>;

}  // namespace turnpoint
