// SPDX-License-Identifier: Apache-2.0
// A plan put together without a search: any configuration per operator, the cheapest paths between them. For models in
// which every activation has one consumer.
#pragma once

#include <random>

#include "core/cost/operator_cost.h"
#include "core/plan/plan.h"
#include "core/scenario/scenario.h"
#include "search/scenario_on.h"
#include "search/small_models.h"

namespace turnpoint::test {

inline Plan hand_plan(const Scenario& scenario, std::uint64_t seed) {
  const Model& model = *scenario.model;
  std::mt19937_64 random(seed);
  Plan plan;
  plan.mesh = make_mesh(*scenario.cluster);
  const ReshardingModel resharding(plan.mesh, CollectiveModel(*scenario.cluster, scenario.settings.factors), 1e12);
  const TensorUses uses = analyse_tensor_uses(model);
  const OperatorCostModel costs(scenario, uses, resharding);
  for (std::size_t i = 0; i < model.operators.size(); ++i) {
    const Operator& op = model.operators[OperatorId(i)];
    const auto all = enumerate_configurations(model, op, plan.mesh, false);
    PlanOperator item;
    item.op = OperatorId(i);
    item.split = all[random() % all.size()];
    auto cost = costs.cost(item.op, item.split, {}, true);
    item.cost = cost.breakdown;
    item.parameters = std::move(cost.parameters);
    plan.operators.push_back(std::move(item));
  }
  for (const TensorFlow& flow : uses.flows) {
    if (flow.consumers.size() != 1) continue;
    const Tensor& tensor = model.tensors[flow.tensor];
    const auto& use = flow.consumers.front();
    const Operator &producer = model.operators[flow.producer], &consumer = model.operators[use.op];
    const int axes = plan.mesh.count(), bytes = element_bytes(tensor, scenario.settings.precision);
    PlanReshard item;
    item.tensor = flow.tensor;
    item.producer = flow.producer;
    item.consumer = use.op;
    item.from =
        forward_layout(producer, producer.outputs[flow.output], true, plan.operators[flow.producer.index].split, axes);
    item.to = gradient_layout(consumer, consumer.inputs[use.input], false, plan.operators[use.op.index].split, axes);
    const Layout read = item.to.without_partial(), source = item.from.without_partial();
    item.forward = resharding.path(tensor.shape, bytes, item.from, read).steps;
    if (tensor.requires_gradient) item.gradient = resharding.path(tensor.shape, bytes, item.to, source).steps;
    add_network(item.cost, item.forward);
    add_network(item.cost, item.gradient);
    const std::int64_t produced = local_bytes(plan.mesh, source, tensor, scenario.settings.precision),
                       resharded = local_bytes(plan.mesh, read, tensor, scenario.settings.precision);
    const bool kept_anyway = flow.producer_saves || flow.producer_is_view;
    std::int64_t& kept = plan.operators[flow.producer.index].cost[MemoryPart::activations];
    if (flow.producer_copy_is_here() && tensor.requires_gradient && flow.consumer_saves[0] && item.from != read) {
      // Both copies, the one before, or the one after: all three are tried.
      const auto choice = (seed + flow.producer.index) % 3;
      if (choice == 1) item.repeated = item.forward;
      if (choice == 2) item.restored = resharding.path(tensor.shape, bytes, read, source).steps;
      add_network(item.cost, choice == 1 ? item.repeated : item.restored);
      item.keep = choice == 0 ? Keep::both : choice == 1 ? Keep::before : Keep::after;
      if (choice < 2) kept += produced;
      if (choice == 0) item.cost[MemoryPart::copies] += resharded;
      if (choice == 2) item.cost[MemoryPart::activations] += resharded;
    } else if (flow.consumer_saves[0] && item.from != read) {
      item.keep = kept_anyway ? Keep::both : Keep::after;
      item.cost[kept_anyway ? MemoryPart::copies : MemoryPart::activations] += resharded;
      if (flow.producer_copy_is_here()) kept += produced;
    } else if (flow.producer_copy_is_here() || (flow.consumer_saves[0] && !kept_anyway)) {
      kept += produced;
      if (flow.consumer_saves[0]) item.keep = Keep::before;
    }
    if (item.from != item.to || !item.forward.empty() || !item.gradient.empty())
      plan.reshards.push_back(std::move(item));
  }
  for (const auto& item : plan.operators) plan.cost += item.cost;
  for (const auto& item : plan.reshards) plan.cost += item.cost;
  return plan;
}

}  // namespace turnpoint::test
