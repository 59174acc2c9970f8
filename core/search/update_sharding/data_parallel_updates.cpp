// SPDX-License-Identifier: Apache-2.0
#include "core/search/update_sharding/data_parallel_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/base/text.h"
#include "core/cost/collectives.h"
#include "core/cost/parameters.h"
#include "core/cost/side_kernels.h"
#include "core/cost/tensor_use.h"
#include "core/search/update_sharding/decision.h"

namespace turnpoint::update_sharding {

namespace {

constexpr double kMasterBytes = 4;  // of a weight as it is updated

/// All numbers of replicas that axes of the mesh make up, of those of each number and level the nearest: as `ft` offers
/// them, and as a plan can say.
std::vector<ShardGroups> groups_of(const Mesh& mesh) {
  const int replicas = mesh.devices();
  const std::uint32_t all = (1u << mesh.count()) - 1;
  std::vector<ShardGroups> groups;
  for (const std::uint32_t axes : sharing_groups(mesh, all, all))
    groups.push_back({axes == all ? ShardGroups::Way::all : ShardGroups::Way::rows, replicas,
                      static_cast<int>(mesh.size_of(axes)), axes, all & ~axes});
  if (groups.empty()) groups.push_back({ShardGroups::Way::whole, replicas, 1});
  return groups;
}

DecisionOptions options_of(const Scenario& scenario, const Mesh& mesh, const CollectiveModel& collectives) {
  const Settings& settings = scenario.settings;
  const DeviceType& device = scenario.cluster->device;
  DecisionOptions options;
  options.memory_bandwidth = device.memory_bandwidth * device.memory_efficiency * settings.factors.device_speed;
  options.groups = groups_of(mesh);
  options.price = [&collectives, &mesh](Collective kind, ReplicaSet set, double bytes) {
    return collectives.time(kind, mesh.group(set.axes ? set.axes : (1u << mesh.count()) - 1), bytes).value;
  };
  options.layout = holds_tiles(*scenario.cluster) ? ShardLayout::reshape_and_pad : ShardLayout::flat;
  options.bucket_bytes = scenario.by_library() ? static_cast<double>(settings.bucket_bytes) : 0;
  options.more_bytes =
      bytes_per_update(settings, scenario.cluster->library) - bytes_per_update(settings, Library::torus);
  options.half_products = settings.gathers == Gathers::bf16 && settings.precision == Precision::fp32;
  return options;
}

TrainingPrecision precision_of(const Settings& settings) {
  TrainingPrecision precision;
  const bool half = settings.precision != Precision::fp32;
  precision.read_weights = half ? 2 : 4;
  precision.gradients = half && settings.gradients == Gradients::as_weights ? 2 : 4;
  precision.auxiliaries = settings.optimizer_state == OptimizerState::bf16 ? 2 : 4;
  return precision;
}

UpdateSeconds seconds_of(const UpdateChoice& choice) {
  return {choice.time.reduce_s, choice.time.update_s + choice.sums_s, choice.time.gather_s + choice.gathers_s};
}

class Made {
 public:
  Made(const Scenario& scenario, const Program& program, const DecisionOptions& options, UpdateDecisions decisions)
      : scenario_(scenario),
        model_(*scenario.model),
        program_(program),
        options_(options),
        decisions_(std::move(decisions)),
        uses_(analyse_tensor_uses(model_)) {
    for (std::size_t w = 0; w < decisions_.weights.size(); ++w) number_[decisions_.weights[w].weight] = w;
  }

  Expected<DataParallelUpdates> run() {
    made_.choices.resize(model_.operators.size());
    for (const WeightDecision& one : decisions_.weights) made_.weights.push_back(told(one));
    for (std::size_t o = 0; o < made_.choices.size(); ++o)
      if (auto done = take(OperatorId(o)); !done) return done.error();
    for (std::size_t w = 0; w < decisions_.weights.size(); ++w) add_held(decisions_.weights[w]);
    return std::move(made_);
  }

 private:
  /// The operator's parameters are updated as the largest of them is to be.
  Expected<void> take(OperatorId id) {
    const Operator& op = model_.operators[id];
    std::vector<std::size_t> owned;
    std::size_t leader = 0;
    std::int64_t largest = 0;
    for (std::size_t k = 0; k < op.inputs.size(); ++k) {
      const Tensor& tensor = model_.tensors[op.inputs[k].tensor];
      const auto found = number_.find(tensor.name);
      if (!uses_.owns_parameter[id.index][k] || found == number_.end()) continue;
      owned.push_back(found->second);
      if (tensor.elements() <= largest) continue;
      largest = tensor.elements(), leader = found->second;
    }
    if (owned.empty()) return {};
    const UpdateChoice chosen = decisions_.weights[leader].chosen;
    made_.choices[id.index] = choice_of(chosen);
    for (const std::size_t w : owned)
      if (w != leader)
        if (auto done = follow(w, leader, chosen); !done) return done;
    return {};
  }

  MemoryChoice choice_of(const UpdateChoice& chosen) const {
    MemoryChoice choice;
    if (!chosen.sharded()) return choice;
    choice.update = Update::sharded;
    choice.update_axes = chosen.groups.row_axes;
    choice.tiles = options_.layout == ShardLayout::reshape_and_pad;
    if (chosen.variant == Variant::stays_sharded)
      choice.gather = options_.half_products && chosen.gather_element_bytes <= 2 ? WeightGather::before_forward_bf16
                                                                                 : WeightGather::before_forward;
    return choice;
  }

  Expected<void> follow(std::size_t w, std::size_t leader, const UpdateChoice& chosen) {
    WeightDecision& decision = decisions_.weights[w];
    const bool alike = decision.chosen.variant == chosen.variant &&
                       (!chosen.sharded() || decision.chosen.groups.row_axes == chosen.groups.row_axes);
    if (alike) return {};
    auto priced = chosen.sharded()
                      ? price_choice(program_, decisions_.clusters, w, chosen.variant, chosen.groups, options_)
                      : Expected<UpdateChoice>(decision.replicated);
    if (!priced) return priced.error();
    decision.chosen = std::move(*priced);
    made_.weights[w] = told(decision);
    const WeightUpdate& own = made_.weights[w];
    made_.weights[w].reason = fmt::format(
        "{} with '{}', as an operator updates its weights together; a step takes {} for it, {} with its update whole",
        own.sharded() ? fmt::format("sharded over {} of {} replicas", own.shards, own.replicas) : "whole",
        decisions_.weights[leader].weight, format_seconds(own.chosen.total()), format_seconds(own.whole.total()));
    return {};
  }

  WeightUpdate told(const WeightDecision& decision) const {
    WeightUpdate made;
    made.weight = decision.weight, made.reason = decision.reason;
    made.replicas = program_.replicas;
    made.shards = decision.chosen.groups.shards();
    made.padding = decision.chosen.format.padding();
    made.gather_bytes = decision.chosen.gather_element_bytes;
    made.whole = seconds_of(decision.replicated), made.chosen = seconds_of(decision.chosen);
    return made;
  }

  /// Of weights that are gathered in less than they are updated in, the shard is held beside.
  void add_held(const WeightDecision& one) {
    UpdateBytes bytes = one.bytes;
    const int read = precision_of(scenario_.settings).read_weights;
    bytes.gathered = bytes.weight / kMasterBytes * read;
    made_.held.add(bytes, one.chosen.groups.shards(), program_.replicas);
    if (read > one.chosen.gather_element_bytes && one.chosen.sharded())
      made_.held.inside += bytes.weight / kMasterBytes * (one.chosen.gather_element_bytes - read) +
                           bytes.weight / one.chosen.groups.shards();
    made_.shards_gradients = made_.shards_gradients || one.chosen.sharded();
  }

  const Scenario& scenario_;
  const Model& model_;
  const Program& program_;
  const DecisionOptions& options_;
  UpdateDecisions decisions_;
  const TensorUses uses_;
  std::map<std::string, std::size_t> number_;  ///< of a decision
  DataParallelUpdates made_;
};

}  // namespace

Expected<DataParallelUpdates> data_parallel_updates(const Scenario& scenario, const TrainingLoop& loop) {
  const auto program = training_program_of(*scenario.model, scenario.settings.optimizer, loop,
                                           scenario.cluster->devices(), precision_of(scenario.settings));
  if (!program) return program.error();
  const CollectiveModel collectives = collectives_of(scenario);
  const Mesh mesh = make_mesh(*scenario.cluster);
  const DecisionOptions options = options_of(scenario, mesh, collectives);
  auto decisions = decide_updates(*program, options);
  if (!decisions) return decisions.error();
  return Made(scenario, *program, options, std::move(*decisions)).run();
}

}  // namespace turnpoint::update_sharding
