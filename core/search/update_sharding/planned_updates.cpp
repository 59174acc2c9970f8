// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/planned_updates.h"

#include <fmt/format.h>
#include <algorithm>

#include "core/base/text.h"
#include "core/cost/collectives.h"
#include "core/cost/operator_cost.h"
#include "core/cost/parameters.h"
#include "core/cost/tensor_use.h"

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
        costs_(scenario, uses_, resharding_) {}

  PlannedUpdates run() {
    PlannedUpdates made;
    made.choices.resize(model_.operators.size());
    for (std::size_t o = 0; o < made.choices.size(); ++o)
      if (has_parameters(o)) made.weights.push_back(decide(OperatorId(o), made.choices[o]));
    return made;
  }

 private:
  /// How one operator's parameters could be updated.
  struct Way {
    MemoryChoice choice;
    int shards = 1;
    UpdateSeconds seconds;
  };

  bool has_parameters(std::size_t o) const {
    return std::find(uses_.owns_parameter[o].begin(), uses_.owns_parameter[o].end(), true) !=
           uses_.owns_parameter[o].end();
  }

  /// Its largest parameter: the others go by it.
  const Access& largest(OperatorId id) const {
    const Operator& op = model_.operators[id];
    const Access* found = nullptr;
    for (std::size_t k = 0; k < op.inputs.size(); ++k)
      if (uses_.owns_parameter[id.index][k] &&
          (!found || model_.tensors[op.inputs[k].tensor].elements() > model_.tensors[found->tensor].elements()))
        found = &op.inputs[k];
    return *found;
  }

  UpdateSeconds seconds_of(OperatorId id, const MemoryChoice& choice) const {
    const CostBreakdown cost = costs_.cost(id, splits_.operators[id.index].split, choice).breakdown;
    UpdateSeconds seconds;
    seconds.update = cost.compute[static_cast<std::size_t>(ComputePart::update)];
    seconds.gather = cost.network[static_cast<std::size_t>(NetworkPart::all_gather)];
    seconds.reduce = cost.network_s() - seconds.gather;
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

  WeightUpdate decide(OperatorId id, MemoryChoice& choice) const {
    const Access& access = largest(id);
    const Tensor& tensor = model_.tensors[access.tensor];
    const Mesh& mesh = splits_.mesh;
    const Layout layout =
        forward_layout(model_.operators[id], access, false, splits_.operators[id.index].split, mesh.count());
    const std::int64_t elements = local_elements(mesh, layout, tensor.shape);
    const Way whole{{}, 1, seconds_of(id, {})};
    Way best = whole, nearest;
    int replicas = 1;
    std::uint32_t axes = 0;
    for (int a = mesh.count() - 1; a >= 0; --a) {
      axes |= 1u << a;
      if (layout.axis[static_cast<std::size_t>(a)] >= 0) continue;  // splits the weight: no replicas along it
      replicas *= mesh.axes[static_cast<std::size_t>(a)].size;
      Way way{{}, replicas, {}};
      way.choice.update = Update::sharded;
      way.choice.update_axes = axes;
      way.seconds = seconds_of(id, way.choice);
      way.seconds.gather += checkpoints_s(axes & ~split_axes(layout, mesh), elements);
      if (nearest.shards == 1 || way.seconds.total() < nearest.seconds.total()) nearest = way;
      if (way.seconds.total() < best.seconds.total() * (1 - kLess)) best = way;
    }
    choice = best.choice;
    WeightUpdate told;
    told.weight = tensor.name;
    told.shards = best.shards, told.replicas = replicas;
    const auto padded = (elements + best.shards - 1) / best.shards * best.shards;
    told.padding = elements > 0 ? double(padded - elements) / double(elements) : 0;
    told.gather_bytes = element_bytes(tensor, scenario_.settings.precision);
    told.whole = whole.seconds, told.chosen = best.seconds;
    told.reason = reason(whole, best, nearest, replicas);
    return told;
  }

  static std::uint32_t split_axes(const Layout& layout, const Mesh& mesh) {
    std::uint32_t axes = 0;
    for (int a = 0; a < mesh.count(); ++a)
      if (layout.axis[static_cast<std::size_t>(a)] >= 0) axes |= 1u << a;
    return axes;
  }

  static std::string reason(const Way& whole, const Way& best, const Way& nearest, int replicas) {
    const auto text = [](double seconds) { return format_seconds(seconds); };
    if (replicas == 1) return "whole: no two devices hold the same of it";
    if (best.shards == 1)
      return fmt::format("whole: sharded over {} of {} replicas a step would take {} for it instead of {}",
                         nearest.shards, replicas, text(nearest.seconds.total()), text(whole.seconds.total()));
    return fmt::format(
        "sharded over {} of {} replicas: the update falls from {} to {}, and the new weight is gathered for {}; a step "
        "takes {} for it instead of {}",
        best.shards, replicas, text(whole.seconds.update), text(best.seconds.update), text(best.seconds.gather),
        text(best.seconds.total()), text(whole.seconds.total()));
  }

  const Scenario& scenario_;
  const Model& model_;
  const Plan& splits_;
  const TrainingLoop& loop_;
  const TensorUses uses_;
  const CollectiveModel collectives_;
  const ReshardingModel resharding_;
  const OperatorCostModel costs_;
};

}  // namespace

PlannedUpdates updates_on(const Scenario& scenario, const Plan& splits, const TrainingLoop& loop) {
  return Updates(scenario, splits, loop).run();
}

}  // namespace turnpoint::update_sharding
