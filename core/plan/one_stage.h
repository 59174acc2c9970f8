// SPDX-License-Identifier: Apache-2.0
// What one stage of a pipeline sees: a part of the machine, one micro-batch, and a sharding plan over both. Stages lie
// outermost in the cluster, one behind the other: whole nodes, or equal parts of one.
#pragma once

#include "core/base/expected.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// The cluster that one of `stages` stages runs on; nullptr where stages would be neither whole nodes nor equal parts
/// of one.
ClusterPtr stage_cluster(const Cluster& cluster, int stages);

/// One micro-batch on one stage's cluster. Error: the batch or the machine cannot be divided so.
Expected<ScenarioPtr> one_stage_of(const Scenario& scenario, int stages, int micro_batches);

/// By axis of the machine's mesh: the axis of one stage's mesh that it is; -1: it lies between stages.
std::vector<int> stage_axes(const Mesh& machine, int stages);

/// The plan of a pipeline over the mesh of one stage. Error: an operator or a step reaches across stages.
Expected<Plan> on_one_stage(const Plan& plan, const Mesh& stage, int stages);

/// A device and its like on another stage; all devices of a stage talk at once.
DeviceGroup pair_of_stages(const Cluster& cluster, int stages, int one, int other);

}  // namespace turnpoint
