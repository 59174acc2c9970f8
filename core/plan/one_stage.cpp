// SPDX-License-Identifier: Apache-2.0
#include "core/plan/one_stage.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/plan/micro_batch.h"
#include "core/plan/on_mesh.h"

namespace turnpoint {

namespace {

/// The machine's axes that are not between stages: by axis of one stage's mesh.
std::vector<int> axes_of_stage(const Mesh& machine, int stages) {
  const std::vector<int> of_stage = stage_axes(machine, stages);
  std::vector<int> axes;
  for (std::size_t a = 0; a < of_stage.size(); ++a)
    if (of_stage[a] >= 0) axes.push_back(int(a));
  return axes;
}

bool is_part_of(const Mesh& stage, const Mesh& machine, const std::vector<int>& axes) {
  return std::equal(stage.axes.begin(), stage.axes.end(), axes.begin(), axes.end(),
                    [&](const MeshAxis& axis, int a) { return axis.size == machine.axes[std::size_t(a)].size; });
}

}  // namespace

ClusterPtr stage_cluster(const Cluster& cluster, int stages) {
  auto part = std::make_shared<Cluster>(cluster);
  if (cluster.nodes % stages == 0) {
    set_nodes(*part, cluster.nodes / stages);
  } else if (stages % cluster.nodes == 0 && cluster.devices_per_node % (stages / cluster.nodes) == 0) {
    set_nodes(*part, 1);
    part->devices_per_node = cluster.devices_per_node / (stages / cluster.nodes);
  } else {
    return nullptr;
  }
  if (stages > 1) part->groups.clear();
  // A device goes through its stage's part of the model alone, where the model of one stage is the whole one.
  part->device.cache_bytes *= stages;
  return part;
}

Expected<ScenarioPtr> one_stage_of(const Scenario& scenario, int stages, int micro_batches) {
  const auto model = micro_batch_model(scenario.model, micro_batches);
  if (!model) return model.error();
  auto one = std::make_shared<Scenario>(scenario);
  one->model = *model;
  one->settings.batch = (*model)->batch;
  one->cluster = stage_cluster(*scenario.cluster, stages);
  if (!one->cluster)
    return bad_input(fmt::format("has {} stages, which are neither whole nodes nor equal parts of one", stages),
                     scenario.cluster->title);
  const Mesh machine = make_mesh(*scenario.cluster), stage = make_mesh(*one->cluster);
  if (!is_part_of(stage, machine, axes_of_stage(machine, stages)))
    return bad_input(fmt::format("has more axes than can be told apart, and {} stages lie across them", stages),
                     scenario.cluster->title);
  return ScenarioPtr(std::move(one));
}

std::vector<int> stage_axes(const Mesh& machine, int stages) {
  std::vector<int> axes;
  int of_stage = 0, left = stages;
  for (const MeshAxis& axis : machine.axes) {
    const bool between = left > 1 && left % axis.size == 0;
    if (between) left /= axis.size;
    axes.push_back(between ? -1 : of_stage++);
  }
  return axes;
}

Expected<Plan> on_one_stage(const Plan& plan, const Mesh& stage, int stages) {
  const std::vector<int> from = axes_of_stage(plan.mesh, stages);
  if (!is_part_of(stage, plan.mesh, from))
    return bad_input("is not the mesh of the machine that its stages are parts of", "mesh");
  std::uint32_t between = (1u << plan.mesh.count()) - 1;
  for (const int axis : from) between &= ~(1u << axis);
  const auto crosses = [&](const std::vector<ReshardStep>& steps) {
    return std::any_of(steps.begin(), steps.end(), [&](const ReshardStep& step) { return (step.axes & between) != 0; });
  };
  for (const PlanOperator& op : plan.operators) {
    bool reaches = (op.choice.update_axes & between) != 0;
    for (int a = 0; a < plan.mesh.count(); ++a)
      reaches = reaches || ((between >> a & 1u) && op.split.axis[std::size_t(a)] != Configuration::kRepeat);
    for (const ParameterSteps& group : op.parameters)
      for (const ParameterRole role : kParameterRoles) reaches = reaches || crosses(group.steps(role));
    if (reaches)
      return bad_input("reaches across the stages of the pipeline", fmt::format("operators[{}]", op.op.index));
  }
  for (std::size_t r = 0; r < plan.reshards.size(); ++r)
    for (const ReshardRole role : kReshardRoles)
      if (crosses(plan.reshards[r].steps(role)))
        return bad_input("reaches across the stages of the pipeline", fmt::format("reshards[{}]", r));
  if (plan.pipeline)
    for (const PlanPipeline::TiedSum& sum : plan.pipeline->tied)
      if (crosses(sum.gather) || crosses(sum.sync) || crosses(sum.spread))
        return bad_input("reaches across the stages of the pipeline", "tied");
  return on_mesh(plan, stage, from);
}

DeviceGroup pair_of_stages(const Cluster& cluster, int stages, int one, int other) {
  const int per_stage = cluster.devices() / stages, per_node = cluster.devices_per_node;
  const bool crosses = one * per_stage / per_node != other * per_stage / per_node;
  DeviceGroup pair;
  pair.size = 2;
  pair.nodes = crosses ? 2 : 1;
  pair.per_node = crosses ? 1 : 2;
  const int talking = std::min(per_stage, per_node);  // of one node
  pair.concurrent = crosses ? std::max(1, talking * cluster.nodes / 2) : talking;
  for (std::size_t l = 0; l < cluster.pods.size(); ++l) {
    const int of_pod = cluster.pods[l].nodes * per_node;
    pair.pods[l] = one * per_stage / of_pod == other * per_stage / of_pod ? 1 : 2;
  }
  return pair;
}

std::uint32_t held_alike_in_node(const Mesh& stage, const Layout& layout, std::size_t dimensions) {
  std::uint32_t alike = 0;
  for (int a = 0; a < stage.count(); ++a)
    if (stage.axes[std::size_t(a)].level == kIntraNode) alike |= 1u << a;
  for (std::size_t d = 0; d < dimensions; ++d) alike &= ~layout.mask(static_cast<std::int8_t>(d));
  return alike;
}

double send_between_stages(const CollectiveModel& collectives, const Cluster& cluster, const Mesh& stage, int stages,
                           int from, int to, const BoundaryBytes& bytes) {
  const DeviceGroup pair = pair_of_stages(cluster, stages, from, to);
  double whole = 0, parts = 0, gathering = 0;
  for (const auto& [alike, sent] : bytes) {
    const int share = stage.size_of(alike);
    whole += sent;
    parts += sent / share;
    if (share > 1) gathering += collectives.time(Collective::all_gather, stage.group(alike), sent).value;
  }
  const double at_once = collectives.time(Collective::send, pair, whole).value;
  if (gathering <= 0) return at_once;
  return std::min(at_once, collectives.time(Collective::send, pair, parts).value + gathering);
}

}  // namespace turnpoint
