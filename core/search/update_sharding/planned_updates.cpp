// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/planned_updates.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "core/base/text.h"
#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/parameters.h"
#include "core/cost/tensor_use.h"
#include "core/plan/iteration_cost.h"
#include "core/search/update_sharding/decision_words.h"

namespace turnpoint::update_sharding {

namespace {

constexpr double kLess = 1e-9;  // of a time: what is no rounding

class Updates {
 public:
  Updates(const Scenario& scenario, const Plan& splits, const TrainingLoop& loop)
      : scenario_(scenario),
        model_(*scenario.model),
        splits_(splits),
        loop_(loop),
        uses_(analyse_tensor_uses(model_)),
        collectives_(collectives_of(scenario)),
        resharding_(splits.mesh, collectives_,
                    scenario.cluster->device.memory_bandwidth * scenario.cluster->device.memory_efficiency *
                        scenario.settings.factors.device_speed),
        costs_(scenario, uses_, resharding_, splits.micro_batches()),
        counted_(with_all_counted(scenario)),
        bytes_(*counted_, uses_, resharding_, splits.micro_batches()) {}

  PlannedUpdates run() {
    PlannedUpdates made;
    for (const PlanOperator& op : splits_.operators) made.choices.push_back(whole_update(op.choice));
    for (std::size_t o = 0; o < made.choices.size(); ++o)
      if (has_parameters(o)) made.weights.push_back(decide(OperatorId(o), made.choices[o]));
    for (std::size_t o = 0; o < made.choices.size(); ++o)
      if (has_parameters(o)) add_held(OperatorId(o), made.choices[o], made.held);
    return made;
  }

 private:
  void add_held(OperatorId id, const MemoryChoice& chosen, HeldBytes& held) const {
    const auto bytes = [&](const MemoryChoice& choice) {
      return bytes_.cost(id, splits_.operators[id.index].split, choice).breakdown;
    };
    const auto all = [](CostBreakdown cost) {
      return double(cost[MemoryPart::parameters] + cost[MemoryPart::gradients] + cost[MemoryPart::optimizer]);
    };
    const CostBreakdown unsharded = bytes(whole_update(chosen));
    held.whole += all(unsharded);
    CostBreakdown outside = unsharded;
    outside[MemoryPart::gradients] = 0;
    held.outside += all(outside);
    held.inside += all(bytes(chosen));
    MemoryChoice zero = whole_update(chosen);
    zero.update_axes = (1u << splits_.mesh.count()) - 1;
    for (std::size_t stage = 0; stage < kZeroStages.size(); ++stage) {
      zero.update = kZeroStages[stage];
      held.zero[stage] += all(bytes(zero));
    }
  }

  /// How one operator's parameters could be updated.
  struct Way {
    MemoryChoice choice;
    int shards = 1;
    UpdateSeconds seconds;
  };

  bool staged() const { return splits_.pipeline && splits_.pipeline->stages > 1; }
  /// Sharded updates to be tried. Scattered in backward, gradients are exchanged for every micro-batch, which may still
  /// be less than adding up whole ones. Engines with stages exchange once, since the stages before wait for backward.
  std::vector<Update> sharded_updates() const {
    if (staged()) return {Update::sharded_state};
    if (splits_.micro_batches() > 1) return {Update::sharded_state, Update::sharded};
    return {Update::sharded};
  }

  /// When new weights are gathered: before forward where they are read in less than they are updated in, since they
  /// stay sharded anyway; also in 16 bits where the scenario lets gathers round. Stages gather behind the update, while
  /// others still work.
  std::vector<WeightGather> gathers(OperatorId id) const {
    const Settings& settings = scenario_.settings;
    if (staged()) return {WeightGather::after_update};
    if (settings.precision != Precision::fp32) return {WeightGather::before_forward};
    if (settings.gathers == Gathers::as_read || !any_for_products_alone(id)) return {WeightGather::after_update};
    return {WeightGather::after_update, WeightGather::before_forward_bf16};
  }

  bool any_for_products_alone(OperatorId id) const {
    const auto& owned = uses_.owns_parameter[id.index];
    for (std::size_t k = 0; k < owned.size(); ++k)
      if (owned[k] && uses_.products_alone[id.index][k]) return true;
    return false;
  }

  bool has_parameters(std::size_t o) const {
    return std::find(uses_.owns_parameter[o].begin(), uses_.owns_parameter[o].end(), true) !=
           uses_.owns_parameter[o].end();
  }

  /// The input of its largest parameter: the others go by it.
  std::uint32_t largest(OperatorId id) const {
    const Operator& op = model_.operators[id];
    const auto elements = [&](std::uint32_t k) { return model_.tensors[op.inputs[k].tensor].elements(); };
    std::optional<std::uint32_t> found;
    for (std::uint32_t k = 0; k < op.inputs.size(); ++k)
      if (uses_.owns_parameter[id.index][k] && (!found || elements(k) > elements(*found))) found = k;
    return *found;
  }

  UpdateSeconds seconds_of(OperatorId id, const MemoryChoice& choice) const {
    CostBreakdown cost = costs_.iteration(costs_.cost(id, splits_.operators[id.index].split, choice));
    UpdateSeconds seconds;
    // Where the optimizer state lives at the host, its way there and back is a part of the update.
    seconds.update = cost[ComputePart::update] + cost[NetworkPart::offload];
    seconds.gather = cost[NetworkPart::all_gather];
    seconds.reduce = cost.network_s() - cost[NetworkPart::offload] - seconds.gather +
                     splits_.micro_batches() * costs_.accumulation_s(id, splits_.operators[id.index].split, choice);
    return seconds;
  }

  /// What checkpoints gather of the optimizer state, a step.
  double checkpoints_s(std::uint32_t axes, std::int64_t elements) const {
    if (loop_.checkpoint_every <= 0) return 0;
    const ParameterBytes bytes = parameter_bytes(scenario_.settings, Accounting::full);
    return collectives_.time(Collective::all_gather, splits_.mesh.group(axes), double(elements) * bytes.optimizer)
               .value /
           double(loop_.checkpoint_every);
  }

  /// `choice`: with the update whole.
  WeightUpdate decide(OperatorId id, MemoryChoice& choice) const {
    const std::uint32_t input = largest(id);
    const Access& access = model_.operators[id].inputs[input];
    const Tensor& tensor = model_.tensors[access.tensor];
    const Mesh& mesh = splits_.mesh;
    const Layout layout =
        forward_layout(model_.operators[id], access, false, splits_.operators[id.index].split, mesh.count());
    const std::int64_t elements = local_elements(mesh, layout, tensor.shape);
    const Way whole{choice, 1, seconds_of(id, choice)};
    Way best = whole, nearest;
    const std::uint32_t split = split_axes(layout, mesh), all = (1u << mesh.count()) - 1;
    const int replicas = static_cast<int>(mesh.size_of(all & ~split));
    const auto parameters = parameter_groups(model_, uses_, id, splits_.operators[id.index].split, mesh.count());
    for (const std::uint32_t axes : sharing_groups(mesh, parameters)) {
      if (!(axes & ~split)) continue;  // shares out smaller ones alone
      for (const Update update : sharded_updates())
        for (const WeightGather gather : gathers(id)) {
          Way way{whole.choice, static_cast<int>(mesh.size_of(axes & ~split)), {}};
          way.choice.update = update, way.choice.update_axes = axes;
          way.choice.gather = gather, way.choice.tiles = holds_tiles(*scenario_.cluster);
          way.seconds = seconds_of(id, way.choice);
          way.seconds.gather += checkpoints_s(axes & ~split, elements);
          if (nearest.shards == 1 || way.seconds.total() < nearest.seconds.total()) nearest = way;
          if (way.seconds.total() < best.seconds.total() * (1 - kLess)) best = way;
        }
    }
    choice = best.choice;
    WeightUpdate told;
    told.weight = tensor.name;
    told.shards = best.shards, told.replicas = replicas;
    GroupElements alone;
    alone.add(local_parameter(model_, uses_, id, input, mesh, layout, scenario_.settings.optimizer));
    const auto padded = alone.shard(choice, best.shards) * best.shards;
    told.padding = elements > 0 ? double(padded - elements) / double(elements) : 0;
    told.gather_bytes = gathered_bytes(choice, uses_.products_alone[id.index][input],
                                       parameter_bytes(scenario_.settings, Accounting::full));
    told.whole = whole.seconds, told.chosen = best.seconds;
    told.reason = reason(told, whole, best, nearest);
    return told;
  }

  static std::uint32_t split_axes(const Layout& layout, const Mesh& mesh) {
    std::uint32_t axes = 0;
    for (int a = 0; a < mesh.count(); ++a)
      if (layout.axis[static_cast<std::size_t>(a)] >= 0) axes |= 1u << a;
    return axes;
  }

  std::string reason(const WeightUpdate& told, const Way& whole, const Way& best, const Way& nearest) const {
    const auto text = [](double seconds) { return format_seconds(seconds); };
    const std::string_view who = staged() ? "its stage" : "a step";
    if (told.replicas == 1) return "whole: no two devices hold the same of it";
    if (!told.sharded())
      return fmt::format("whole: sharded over {} of {} replicas {} would take {} for it instead of {}", nearest.shards,
                         told.replicas, who, text(nearest.seconds.total()), text(whole.seconds.total()));
    return fmt::format(
        "sharded over {} of {} replicas{}: the update falls from {} to {}, and the new weight is gathered "
        "for {} in {}{}; {} takes {} for it instead of {}",
        told.shards, told.replicas, words_of_padding(told.padding), text(whole.seconds.update),
        text(best.seconds.update), text(best.seconds.gather), words_of_precision(told.gather_bytes),
        best.choice.gathers_first() ? " before forward" : "", who, text(best.seconds.total()),
        text(whole.seconds.total()));
  }

  const Scenario& scenario_;
  const Model& model_;
  const Plan& splits_;
  const TrainingLoop& loop_;
  const TensorUses uses_;
  const CollectiveModel collectives_;
  const ReshardingModel resharding_;
  const OperatorCostModel costs_;
  const ScenarioPtr counted_;      ///< gradients and states, too, whatever the accounting
  const OperatorCostModel bytes_;  ///< of what a device holds
};

}  // namespace

MemoryChoice whole_update(MemoryChoice choice) {
  choice.update = Update::replicated, choice.update_axes = 0, choice.whole_rows = choice.tiles = false;
  choice.gather = WeightGather::after_update;
  return choice;
}

PlannedUpdates updates_on(const Scenario& scenario, const Plan& splits, const TrainingLoop& loop) {
  return Updates(scenario, splits, loop).run();
}

Plan with_choices(const Scenario& scenario, Plan plan, const std::vector<MemoryChoice>& choices) {
  const TensorUses uses = analyse_tensor_uses(*scenario.model);
  const CollectiveModel collectives = collectives_of(scenario);
  const DeviceType& device = scenario.cluster->device;
  const ReshardingModel resharding(
      plan.mesh, collectives,
      device.memory_bandwidth * device.memory_efficiency * scenario.settings.factors.device_speed);
  const OperatorCostModel costs(scenario, uses, resharding, plan.micro_batches());
  for (PlanOperator& op : plan.operators) {
    const double accumulated_s = costs.accumulation_s(op.op, op.split, op.choice);
    op.choice = choices[op.op.index];
    auto priced = costs.cost(op.op, op.split, op.choice, true);
    // What it computes, keeps and runs again does not change, but for sums of gradients.
    op.cost[ComputePart::backward] += costs.accumulation_s(op.op, op.split, op.choice) - accumulated_s;
    op.cost.network = priced.breakdown.network;
    op.cost[ComputePart::update] = priced.breakdown[ComputePart::update];
    for (const MemoryPart part : {MemoryPart::parameters, MemoryPart::gradients, MemoryPart::optimizer})
      op.cost[part] = priced.breakdown[part];
    op.parameters = std::move(priced.parameters);
  }
  if (plan.pipeline) return plan;
  plan.cost = {};
  for (const PlanOperator& op : plan.operators) plan.cost += of_iteration(op, 1);
  for (const PlanReshard& reshard : plan.reshards) plan.cost += of_iteration(reshard, 1);
  return plan;
}

Plan with_whole_updates(const Scenario& scenario, Plan plan) {
  std::vector<MemoryChoice> choices;
  for (const PlanOperator& op : plan.operators) choices.push_back(whole_update(op.choice));
  return with_choices(scenario, std::move(plan), choices);
}

}  // namespace turnpoint::update_sharding
