// SPDX-License-Identifier: Apache-2.0
// What one stage of a pipeline sees: a part of the machine, one micro-batch, and a sharding plan over both. Stages lie
// outermost in the cluster, one behind the other: whole nodes, or equal parts of one.
#pragma once

#include <map>

#include "core/base/expected.h"
#include "core/hardware/collective_model.h"
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

/// Tensors that go from one stage to another: bytes on a device, by the axes of a stage's mesh on which its devices
/// hold the same.
using BoundaryBytes = std::map<std::uint32_t, double>;
/// Axes on which devices of one node hold the same of a tensor in this layout.
std::uint32_t held_alike_in_node(const Mesh& stage, const Layout& layout, std::size_t dimensions);
/// Seconds of such a send. Devices of a node that hold the same send a part each, which is gathered behind (Narayanan
/// et al. 2021, arXiv 2104.04473, section 4.1), unless that takes longer than sending all of it.
double send_between_stages(const CollectiveModel& collectives, const Cluster& cluster, const Mesh& stage, int stages,
                           int from, int to, const BoundaryBytes& bytes);

}  // namespace turnpoint
