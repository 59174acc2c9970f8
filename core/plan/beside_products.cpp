// SPDX-License-Identifier: Apache-2.0
#include "core/plan/beside_products.h"

#include <algorithm>

#include "core/cost/collectives.h"
#include "core/cost/logical_dims.h"
#include "core/cost/operator_cost.h"
#include "core/plan/reprice.h"
#include "core/plan/tied_copy.h"

namespace turnpoint {

namespace {

/// A product that the engine can cut into parts: of an attention or a feed-forward part of every token.
bool can_be_cut(const Model& model, const Operator& op) {
  return is_weighted_product(model, op) && std::ranges::none_of(op.dims, [](const LoopDimension& dim) {
           return dim.name == DimName::vocabulary || dim.name == DimName::expert;
         });
}

class CollectivesBeside {
 public:
  CollectivesBeside(const Model& model, const Plan& plan) : model_(model), plan_(plan) {}

  std::vector<BesideProducts> run() {
    for (std::size_t r = 0; r < plan_.reshards.size(); ++r) {
      const PlanReshard& reshard = plan_.reshards[r];
      if (!reshard.producer.valid() || model_.tensors[reshard.tensor].role != TensorRole::activation) continue;
      const Operator& producer = model_.operators[reshard.producer];
      for (const ReshardStep& step : reshard.forward) {
        if (step.move == ReshardMove::all_gather)
          if (const auto fed = fed_by(reshard, step); !fed.empty()) {
            add(r, ReshardRole::forward, step, fed, true);
            add(r, ReshardRole::repeated, step, fed, false);
            add_back(r, ReshardMove::reduce_scatter, step, fed, false);
          }
        if (step.move == ReshardMove::reduce_scatter && can_be_cut(model_, producer)) {
          add(r, ReshardRole::forward, step, {reshard.producer}, true);
          add_back(r, ReshardMove::all_gather, step, {reshard.producer}, true);
        }
      }
    }
    return std::move(found_);
  }

 private:
  /// Products that read whole what the step gathers, each device its own columns of their weight.
  std::vector<OperatorId> fed_by(const PlanReshard& reshard, const ReshardStep& step) const {
    std::vector<OperatorId> fed;
    for (const Model::Use& use : model_.uses[reshard.tensor]) {
      const Operator& op = model_.operators[use.op];
      if ((reshard.consumer.valid() && use.op != reshard.consumer) || !can_be_cut(model_, op)) continue;
      const Configuration& split = plan_.operators[use.op.index].split;
      const Layout read = forward_layout(op, op.inputs[use.input], false, split, plan_.mesh.count());
      bool columns = true;
      for (int a = 0; a < plan_.mesh.count(); ++a)
        if (step.axes >> a & 1u)
          columns = columns && split.axis[std::size_t(a)] >= 0 && read.axis[std::size_t(a)] == Layout::kReplicated;
      if (columns) fed.push_back(use.op);
    }
    return fed;
  }

  void add(std::size_t r, ReshardRole role, const ReshardStep& like, const std::vector<OperatorId>& products,
           bool in_steps) {
    const auto& steps = plan_.reshards[r].steps(role);
    for (std::size_t k = 0; k < steps.size(); ++k)
      if (steps[k].move == like.move && steps[k].axes == like.axes) found_.push_back({r, role, k, products, in_steps});
  }
  /// What the gradient's way back has in place of the step.
  void add_back(std::size_t r, ReshardMove move, const ReshardStep& there, const std::vector<OperatorId>& products,
                bool in_steps) {
    ReshardStep back = there;
    back.move = move;
    add(r, ReshardRole::gradient, back, products, in_steps);
  }

  const Model& model_;
  const Plan& plan_;
  std::vector<BesideProducts> found_;
};

Overlap overlap_of(const Scenario& scenario) {
  return {scenario.cluster->device.product_launch(),
          scenario.settings.accounting == Accounting::paper ? 1 : scenario.cluster->overlap_slowdown};
}

double shown_s(const BesideProducts& beside, double collective_s, double product_s, double devices,
               const Overlap& overlap) {
  return beside.in_steps ? shown_in_steps_s(collective_s, product_s, devices, overlap)
                         : shown_beside_s(collective_s, product_s, overlap);
}

/// Of products forward, or of one half of their backward.
double part_s(const BesideProducts& beside, CostBreakdown cost) {
  return beside.role == ReshardRole::forward ? cost[ComputePart::forward] : cost[ComputePart::backward] / 2;
}

}  // namespace

std::vector<BesideProducts> beside_products(const Model& model, const Plan& plan) {
  return CollectivesBeside(model, plan).run();
}

double shown_in_steps_s(double collective_s, double product_s, double devices, const Overlap& overlap) {
  const double cut = product_s + (devices - 1) * overlap.launch_s, part = cut / devices;
  const double together = std::min(cut - part, collective_s);
  return std::max(cut, collective_s + part) + (overlap.slowdown - 1) * together - product_s;
}

double shown_beside_s(double collective_s, double product_s, const Overlap& overlap) {
  const double together = std::min(product_s, collective_s);
  return collective_s - together + (overlap.slowdown - 1) * together;
}

void put_beside_products(const Scenario& one_stage, Plan& plan) {
  const Overlap overlap = overlap_of(one_stage);
  for (const BesideProducts& beside : beside_products(*one_stage.model, plan)) {
    PlanReshard& reshard = plan.reshards[beside.reshard];
    ReshardStep& step = reshard.steps(beside.role)[beside.step];
    double product_s = 0;
    for (const OperatorId id : beside.products) product_s += part_s(beside, plan.operators[id.index].cost);
    const double shown = shown_s(beside, step.time_s, product_s, double(plan.mesh.size_of(step.axes)), overlap);
    step.time_s = shown;
    reshard.cost.network = {};
    for (const ReshardRole role : kReshardRoles) add_network(reshard.cost, reshard.steps(role));
  }
}

void hide_beside_products(const Scenario& one_stage, const Plan& plan, int micro_batches,
                          std::vector<PlanCharge>& charges) {
  const Model& model = *one_stage.model;
  const CollectiveModel collectives = collectives_of(one_stage);
  const DeviceType& device = one_stage.cluster->device;
  const ReshardingModel resharding(plan.mesh, collectives, device.memory_bandwidth * device.memory_efficiency);
  const TensorUses uses = uses_on_stages(model, plan);
  const OperatorCostModel costs(one_stage, uses, resharding, micro_batches);
  const Overlap overlap = overlap_of(one_stage);
  for (const BesideProducts& beside : beside_products(model, plan)) {
    const PlanReshard& reshard = plan.reshards[beside.reshard];
    ReshardStep step = reshard.steps(beside.role)[beside.step];
    double product_s = 0;
    for (const OperatorId id : beside.products) {
      const PlanOperator& op = plan.operators[id.index];
      product_s += part_s(beside, costs.cost(id, op.split, op.choice).breakdown);
    }
    const auto asked = collective_of(plan.mesh, step);
    const double whole_s = collectives.time(asked->kind, asked->group, asked->bytes).value;
    step.time_s = shown_s(beside, whole_s, product_s, double(plan.mesh.size_of(step.axes)), overlap) - whole_s;
    PlanCharge charge;
    charge.maker = reshard.producer;
    charge.payer = reshard.consumer.valid() ? reshard.consumer : reshard.producer;
    for (const Model::Use& use : model.uses[reshard.tensor])
      if (!reshard.consumer.valid() && (charge.payer == reshard.producer || use.op.index < charge.payer.index))
        charge.payer = use.op;
    charge.when = beside.role == ReshardRole::forward ? PlanCharge::When::forward : PlanCharge::When::backward;
    add_network(charge.cost, {step});
    charges.push_back(std::move(charge));
  }
}

}  // namespace turnpoint
