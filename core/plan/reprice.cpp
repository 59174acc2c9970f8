// SPDX-License-Identifier: Apache-2.0
#include "core/plan/reprice.h"

#include <algorithm>

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/tensor_use.h"
#include "core/plan/beside_products.h"
#include "core/plan/evaluator.h"
#include "core/plan/on_mesh.h"
#include "core/plan/one_stage.h"

namespace turnpoint {

namespace {

std::uint32_t axes_of_level(const Mesh& mesh, int level) {
  std::uint32_t mask = 0;
  for (int a = 0; a < mesh.count(); ++a)
    if (mesh.axes[static_cast<std::size_t>(a)].level == level) mask |= 1u << a;
  return mask;
}

bool same_shape(const Mesh& a, const Mesh& b) {
  return std::equal(
      a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
      [](const MeshAxis& left, const MeshAxis& right) { return left.size == right.size && left.same_link(right); });
}

void price(const Mesh& mesh, const CollectiveModel& collectives, std::vector<ReshardStep>& steps) {
  for (ReshardStep& step : steps) {
    const auto asked = collective_of(mesh, step);
    step.time_s = 0;
    if (!asked) continue;
    const double message = step.bytes > 0 ? std::max(1.0, step.message_bytes / step.bytes) : 1;
    step.time_s = collectives.time(asked->kind, asked->group, asked->bytes * message).value / message;
    step.algorithm = collectives.algorithm(asked->kind, asked->group, asked->bytes * message);
    // Of a permute across nodes some blocks stay inside them, on what may be the slower link.
    if (step.move == ReshardMove::permute && asked->group.nodes > 1)
      step.time_s =
          std::max(step.time_s,
                   collectives.time(Collective::send, mesh.group(axes_of_level(mesh, kIntraNode)), asked->bytes).value);
  }
}

/// A plan without stages, of one micro-batch where there are several.
Expected<Plan> repriced_stage(const Scenario& scenario, const Plan& plan, int micro_batches) {
  if (!same_shape(plan.mesh, make_mesh(*scenario.cluster)) || plan.operators.size() != scenario.model->operators.size())
    return usage_error("the plan is of another model or of hardware of another shape");
  const CollectiveModel collectives = collectives_of(scenario);
  const ReshardingModel resharding(
      plan.mesh, collectives, scenario.cluster->device.memory_bandwidth * scenario.cluster->device.memory_efficiency);
  const TensorUses uses = analyse_tensor_uses(*scenario.model);
  const OperatorCostModel costs(scenario, uses, resharding, micro_batches);
  const bool together = Messages(scenario, uses).any();
  Plan priced = plan;
  priced.cost = {};
  for (PlanOperator& op : priced.operators) {
    CostBreakdown cost = costs.cost(op.op, op.split, op.choice).breakdown;
    const double offload = cost[NetworkPart::offload], before = op.cost[ComputePart::forward];
    // It runs again as often as it did, whoever chose so.
    cost[ComputePart::recompute] =
        before > 0 ? op.cost[ComputePart::recompute] / before * cost[ComputePart::forward] : 0;
    for (const MemoryPart part : {MemoryPart::activations, MemoryPart::copies, MemoryPart::workspace})
      cost[part] = op.cost[part];
    cost.network = {};
    cost[NetworkPart::offload] = offload;
    for (ParameterSteps& group : op.parameters)
      for (const ParameterRole role : kParameterRoles) {
        if (!together)
          for (ReshardStep& step : group.steps(role)) step.message_bytes = 0;
        price(plan.mesh, collectives, group.steps(role));
        add_network(cost, group.steps(role));
      }
    op.cost = cost;
    priced.cost += cost;
  }
  for (PlanReshard& reshard : priced.reshards) {
    reshard.cost.network = {};
    for (const ReshardRole role : kReshardRoles) {
      price(plan.mesh, collectives, reshard.steps(role));
      add_network(reshard.cost, reshard.steps(role));
    }
    priced.cost += reshard.cost;
  }
  return priced;
}

/// Operators and reshardings as one stage prices them, all that stages and micro-batches come to by the schedule.
Expected<Plan> repriced_pipeline(const Scenario& scenario, const Plan& plan) {
  const PlanPipeline& pipeline = *plan.pipeline;
  auto laid_out = evaluate_pipeline(scenario, plan);
  if (!laid_out) return laid_out.error();
  const auto one_stage = one_stage_of(scenario, pipeline.stages, pipeline.micro_batches);
  if (!one_stage) return one_stage.error();
  auto alone = on_one_stage(plan, make_mesh(*(*one_stage)->cluster), pipeline.stages);
  if (!alone) return alone.error();
  alone->pipeline.reset();
  auto stage = repriced_stage(**one_stage, *alone, pipeline.micro_batches);
  if (!stage) return stage.error();
  if (pipeline.beside_products) put_beside_products(**one_stage, *stage);
  Plan priced = on_mesh(*stage, plan.mesh, stage_axes(plan.mesh, pipeline.stages));
  priced.cost = laid_out->cost;
  priced.pipeline = pipeline;
  priced.pipeline->bubble_s = laid_out->bubble_s;
  priced.pipeline->stage_memory_bytes = std::move(laid_out->stage_memory_bytes);
  priced.pipeline->tied = std::move(laid_out->tied);
  priced.pipeline->send_s = std::move(laid_out->send_s);
  priced.pipeline->send_back_s = std::move(laid_out->send_back_s);
  priced.pipeline->micro_batch = (*one_stage)->model;
  return priced;
}

}  // namespace

std::optional<StepCollective> collective_of(const Mesh& mesh, const ReshardStep& step) {
  StepCollective asked;
  asked.group = mesh.group(step.axes);
  const double size = std::max(2, asked.group.size), all_of_received = size / (size - 1);
  switch (step.move) {
    case ReshardMove::slice: return std::nullopt;
    case ReshardMove::all_gather: asked.kind = Collective::all_gather; break;
    case ReshardMove::reduce_scatter: asked.kind = Collective::reduce_scatter; break;
    case ReshardMove::all_reduce: asked.kind = Collective::all_reduce; break;
    case ReshardMove::all_to_all: asked.kind = Collective::all_to_all; break;
    case ReshardMove::permute: {
      const bool across = (step.axes & axes_of_level(mesh, kInterNode)) != 0;
      asked.kind = Collective::send;
      asked.group = mesh.group(axes_of_level(mesh, across ? kInterNode : kIntraNode));
      asked.bytes = asked.full_bytes = step.bytes;
      return asked;
    }
  }
  asked.bytes = step.bytes * all_of_received / (step.move == ReshardMove::all_reduce ? 2 : 1);
  asked.full_bytes = step.move == ReshardMove::all_to_all ? asked.bytes * size : asked.bytes;
  return asked;
}

Expected<Plan> repriced(const Scenario& scenario, const Plan& plan) {
  return plan.pipeline ? repriced_pipeline(scenario, plan) : repriced_stage(scenario, plan, 1);
}

}  // namespace turnpoint
