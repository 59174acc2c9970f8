// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/fsdp.h"

#include <fmt/format.h>

#include "core/plan/micro_batch.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/options.h"
#include "core/search/baselines/parallel_axes.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/restricted.h"
#include "core/search/method/notes.h"

namespace turnpoint::search {

namespace {

/// Among whom weights are sharded on this machine.
struct ShardGroup {
  bool in_node = false;
  int devices = 0;  ///< 0: not said

  int size(const Mesh& mesh) const {
    if (!in_node) return devices;
    int in_one = 1;
    for (const MeshAxis& axis : mesh.axes)
      if (axis.level == kIntraNode) in_one *= axis.size;
    return in_one;
  }
  std::optional<std::uint32_t> axes(const Mesh& mesh) const {
    return sharing_axes(mesh, {.data = (1u << mesh.count()) - 1}, size(mesh));
  }
  /// Empty: there is such a group.
  std::string refusal(const Cluster& cluster) const {
    const Mesh mesh = make_mesh(cluster);
    if (in_node && devices > 0 && devices != size(mesh))
      return fmt::format("group=node is {} devices here, and shard={} says otherwise", size(mesh), devices);
    if (devices > 0 && cluster.devices() % devices != 0)
      return fmt::format("shard={} does not divide {} devices", devices, cluster.devices());
    if (axes(mesh)) return {};
    return fmt::format("shard={} groups are neither equal parts of a node nor whole nodes on {} nodes of {} devices",
                       devices, cluster.nodes, cluster.devices_per_node);
  }
};

class FullySharded : public Searcher {
 public:
  FullySharded(int stage, ShardGroup group, std::string_view recompute, int micro_batches, std::string parameters)
      : stage_(stage),
        group_(group),
        selective_(recompute == "selective"),
        by_operator_(recompute == "op"),
        micro_batches_(micro_batches),
        parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    if (const auto reason = group_.refusal(*scenario->cluster); !reason.empty()) return usage_error(reason);
    const std::uint32_t axes = *group_.axes(make_mesh(*scenario->cluster));
    SearchSpace space;
    space.only = [](OperatorId, const Operator& op, const Mesh& on) {
      return std::vector<Configuration>{data_parallel_configuration(op, on)};
    };
    space.choice = zero_choice(stage_, axes, scenario->settings.accounting);
    const auto result = selective_ || by_operator_ || micro_batches_ > 1
                            ? transformer_point(scenario, axes, context)
                            : fastest_with("fsdp", scenario, space, ReshardingModel::Ways::fewest, context);
    if (!result || parameters_.empty()) return result;
    auto named = std::make_shared<Result>(**result);
    named->method = "fsdp";
    named->method_options = parameters_;
    return ResultPtr(std::move(named));
  }

 private:
  // The same plan for every micro-batch, parts of its layers run again or not.
  Expected<ResultPtr> transformer_point(const ScenarioPtr& scenario, std::uint32_t axes,
                                        const RunContext& context) const {
    const auto roles = find_transformer_roles(*scenario->model, scenario->settings.split_windows);
    if (!roles && (selective_ || by_operator_)) return roles.error();
    if (by_operator_ && roles->layers == 0)
      return usage_error("recompute goes by layers, and this model has none that could be told apart");
    ManualSplit split;
    split.data = scenario->cluster->devices(), split.zero = stage_;
    split.shard = group_.size(make_mesh(*scenario->cluster));
    split.micro_batches = micro_batches_;
    split.recompute = split.selective = selective_, split.by_operator = by_operator_;
    if (!split.scheduled())
      return grouped_point("fsdp", scenario, &*roles, {}, false,
                           zero_choice(stage_, axes, scenario->settings.accounting), context, true);
    return pipeline_point(scenario, roles ? &*roles : nullptr, split, context);
  }

  int stage_;
  ShardGroup group_;
  bool selective_, by_operator_;
  int micro_batches_;
  std::string parameters_;
};

Expected<Parameters> read_fsdp(std::string_view text) { return read_parameters("method fsdp", fsdp_options(), text); }

ShardGroup group_of(const Parameters& parameters) {
  return {parameters.choice("group") == "node", parameters.integer("shard")};
}

Expected<std::unique_ptr<Searcher>> make_fsdp(std::string_view text) {
  const auto parameters = read_fsdp(text);
  if (!parameters) return parameters.error();
  const int stage = 1 + parameters->integer("zero");  // the first choice is stage 1
  const int micro_batches = parameters->integer("micro-batches");
  return with_batch_note(std::make_unique<FullySharded>(stage, group_of(*parameters), parameters->choice("recompute"),
                                                        micro_batches, std::string(text)),
                         micro_batches);
}

std::string fsdp_refuses(const Scenario& scenario, std::string_view text) {
  const auto parameters = read_fsdp(text);
  if (!parameters) return parameters.error().what;
  if (auto reason = group_of(*parameters).refusal(*scenario.cluster); !reason.empty()) return reason;
  const auto part = micro_batch_model(scenario.model, parameters->integer("micro-batches"));
  return part ? std::string() : part.error().what;
}

}  // namespace

MemoryChoice zero_choice(int stage, std::uint32_t axes, Accounting accounting) {
  MemoryChoice choice;
  if (stage <= 0 || axes == 0) return choice;
  choice.update = stage == 1 ? Update::sharded_state : stage == 2 ? Update::sharded : Update::sharded_weights;
  choice.update_axes = axes;
  choice.whole_rows = stage >= 3 && accounting == Accounting::full;
  return choice;
}

Method fsdp_method() {
  return {
      .name = "fsdp",
      .title = "Fully sharded",
      .paper = "ZeRO, arXiv 1910.02054; PyTorch FSDP, arXiv 2304.11277",
      .description = "Data-parallel with weights, gradients and optimizer state sharded",
      .on_by_default = true,
      .options = fsdp_options(),
      .make_with = &make_fsdp,
      .refuses_with = &fsdp_refuses,
      .traits =
          [](std::string_view text) {
            const auto parameters = read_fsdp(text);
            // Stage 1 as well: each device updates its share.
            return MethodTraits{.shards_updates = true,
                                .fewest_collectives = true,
                                .recomputes = parameters && parameters->choice("recompute") != "none",
                                .micro_batches = parameters && parameters->integer("micro-batches") > 1};
          },
  };
}

}  // namespace turnpoint::search
