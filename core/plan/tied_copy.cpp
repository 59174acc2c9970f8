// SPDX-License-Identifier: Apache-2.0
#include "core/plan/tied_copy.h"

#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/parameters.h"

namespace turnpoint {

namespace {

Layout layout_of_copy(const Model& model, const Plan& plan, const ParameterTie& tie) {
  const Operator& op = model.operators[tie.user];
  return gradient_layout(op, op.inputs[tie.user_input], false, plan.operators[tie.user.index].split, plan.mesh.count())
      .without_partial();
}

/// As analyse_tensor_uses() counts them: forward, and backward if it reads the weight.
int reads_of_copy(const Model& model, const ParameterTie& tie) {
  return model.operators[tie.user].inputs[tie.user_input].saved ? 2 : 1;
}

}  // namespace

void leave_reads_to_copies(const Model& model, const Plan& plan, const std::vector<ParameterTie>& ties,
                           std::vector<std::vector<int>>& reads) {
  for (const ParameterTie& tie : ties)
    if (plan.operators[tie.owner.index].stage != plan.operators[tie.user.index].stage)
      reads[tie.owner.index][tie.owner_input] -= reads_of_copy(model, tie);
}

TensorUses uses_on_stages(const Model& model, const Plan& plan) {
  TensorUses uses = analyse_tensor_uses(model);
  if (plan.operators.size() == model.operators.size())
    leave_reads_to_copies(model, plan, uses.ties, uses.parameter_reads);
  return uses;
}

std::int64_t tied_elements(const Model& model, const Plan& plan, const ParameterTie& tie) {
  const Access& read = model.operators[tie.user].inputs[tie.user_input];
  return local_elements(plan.mesh, layout_of_copy(model, plan, tie), model.tensors[read.tensor].shape);
}

void describe_tied_copy(const Scenario& one_stage, const TensorUses& uses, const Plan& plan, const ParameterTie& tie,
                        PlanPipeline::TiedSum& sum) {
  const Model& model = *one_stage.model;
  const DeviceType& device = one_stage.cluster->device;
  const ReshardingModel resharding(
      plan.mesh, collectives_of(one_stage),
      device.memory_bandwidth * device.memory_efficiency * one_stage.settings.factors.device_speed);
  const Operator& op = model.operators[tie.user];
  const Access& read = op.inputs[tie.user_input];
  const Tensor& tensor = model.tensors[read.tensor];
  const MemoryChoice& choice = plan.operators[tie.owner.index].choice;
  const ParameterBytes counted = parameter_bytes(one_stage.settings, one_stage.settings.accounting),
                       real = parameter_bytes(one_stage.settings, Accounting::full);
  const ParameterGroup group = parameter_group(op, read, plan.operators[tie.user.index].split, plan.mesh.count());
  const std::uint32_t sharing = group.shards(choice);
  const std::int64_t shards = plan.mesh.size_of(sharing), elements = tied_elements(model, plan, tie);
  const Layout layout = layout_of_copy(model, plan, tie);
  // Read by the user alone, and gathered as its owner gathers.
  GroupElements::Parameter copy =
      local_parameter(model, uses, tie.user, tie.user_input, plan.mesh, layout, one_stage.settings.optimizer);
  copy.reads = copy.rerun_reads = reads_of_copy(model, tie);
  copy.products_alone = uses.products_alone[tie.owner.index][tie.owner_input];
  GroupElements table;
  table.add(copy);
  const std::int64_t shard = table.shard(choice, shards);
  sum.parameter_bytes = table.held_bytes(choice, shards, counted);
  sum.gradient_bytes = (sums_every_micro_batch(choice.update) ? shard : elements) * counted.gradient;
  sum.optimizer_bytes = shard * counted.optimizer;
  ParameterTraffic traffic = table.traffic(choice, shards, real);
  traffic.messages =
      Messages(one_stage, uses).sizes(tie.owner, elements_of(tensor), static_cast<double>(elements) * real.gradient);
  StepPrices prices(resharding);
  ParameterSteps steps;
  price_steps(prices, group, traffic, choice, steps);
  sum.gather = std::move(steps.gather), sum.sync = std::move(steps.sync), sum.spread = std::move(steps.spread);
  sum.update_s = OperatorCostModel(one_stage, uses, resharding).update_s(shard, sharing, copy.shape);
}

}  // namespace turnpoint
