// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/manual.h"

#include <fmt/format.h>

#include "core/plan/one_stage.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/options.h"
#include "core/search/baselines/parallel_axes.h"
#include "core/search/method/notes.h"

namespace turnpoint::search {

namespace {

class Manual : public Searcher {
 public:
  Manual(const ManualParameters& parameters, std::string text) : parameters_(parameters), text_(std::move(text)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto roles = find_transformer_roles(*scenario->model, scenario->settings.split_windows);
    const TransformerRoles* found = roles ? &*roles : nullptr;
    const auto split = fit_manual(parameters_, *scenario, found, roles ? std::string() : roles.error().what);
    if (!split) return split.error();
    const auto result = split->scheduled() ? pipeline_point(scenario, found, *split, context)
                                           : plain_point(scenario, found, *split, context);
    if (!result) return result.error();
    auto named = std::make_shared<Result>(**result);
    named->method_options = text_;
    if (!found) return ResultPtr(std::move(named));
    const std::string no_experts =
        split->expert < parameters_.expert
            ? fmt::format("{} has no experts that ep={} could split", scenario->model->name, parameters_.expert)
            : std::string();
    return with_note(with_note(named, undivided_vocabulary(*scenario->model, *found, {split->tensor})), no_experts);
  }

 private:
  static Expected<ResultPtr> plain_point(const ScenarioPtr& scenario, const TransformerRoles* roles,
                                         const ManualSplit& split, const RunContext& context) {
    return grouped_point("manual", scenario, roles, split.groups(), split.sequence_parallel,
                         update_choice(split, *scenario), context, split.by_operator);
  }

  ManualParameters parameters_;
  std::string text_;
};

}  // namespace

MemoryChoice update_choice(const ManualSplit& split, const Scenario& one_stage) {
  const Mesh mesh = make_mesh(*one_stage.cluster);
  const auto axes = assign_axes(mesh, split.groups());
  const auto sharing = axes ? sharing_axes(mesh, *axes, split.shard) : std::nullopt;
  MemoryChoice choice = zero_choice(split.zero, sharing.value_or(0), one_stage.settings.accounting);
  if (split.gather_first && choice.shares_out()) choice.gather = WeightGather::before_forward;
  return choice;
}

Expected<ManualParameters> parse_manual(std::string_view text) {
  const auto read = read_parameters("a split", manual_options(), text);
  if (!read) return read.error();
  ManualParameters parameters;
  parameters.data = read->integer("dp"), parameters.tensor = read->integer("tp"),
  parameters.stages = read->integer("pp");
  parameters.context = read->integer("cp"), parameters.expert = read->integer("ep");
  parameters.chunks = read->integer("vp");
  parameters.cut_by_time = read->choice("cut") == "time";
  parameters.micro_batches = read->integer("micro-batches");
  parameters.zero = read->integer("zero");  // the choices are the stages from 0 on
  parameters.shard = read->integer("shard");
  const std::string_view recompute = read->choice("recompute");
  parameters.selective = recompute == "selective";
  parameters.by_operator = recompute == "op";
  parameters.recompute = parameters.selective || recompute == "full";
  parameters.sequence_parallel = read->flag("sequence-parallel");
  parameters.gather_first = read->flag("gather-first");
  parameters.forwards_first = read->choice("schedule") == "gpipe";
  parameters.reduce_last = read->flag("reduce-last");
  parameters.beside_products = read->flag("tp-comm-overlap");
  return parameters;
}

namespace {

/// Why so many layers cannot be laid out as runs on stages; empty: they can.
std::string runs_refusal(const ManualParameters& parameters, int layers) {
  const std::int64_t runs = std::int64_t(parameters.stages) * parameters.chunks;
  if (parameters.chunks > 1 && parameters.stages == 1)
    return fmt::format("vp={} runs on every stage need pp of at least 2", parameters.chunks);
  if (parameters.chunks > 1 && parameters.micro_batches % parameters.stages != 0)
    return fmt::format("micro-batches={} is no multiple of pp={}, which the turns of vp={} need",
                       parameters.micro_batches, parameters.stages, parameters.chunks);
  if (runs <= 1) return {};
  const std::string among = parameters.chunks > 1
                                ? fmt::format("pp={} stages of vp={} runs", parameters.stages, parameters.chunks)
                                : fmt::format("pp={} stages", parameters.stages);
  if (layers < runs) return fmt::format("{} layers are fewer than {}", layers, among);
  if (parameters.cut_by_time || !equal_stages(layers, int(runs)).empty()) return {};
  return fmt::format("{} layers cannot be divided among {}, nor can they with embedding and head; cut=time can", layers,
                     among);
}

/// Why the sequence cannot be split over context groups; empty: it can, or need not.
std::string context_refusal_of(const ManualParameters& parameters, const Model& model, const TransformerRoles& roles,
                               const ExpertLoops& experts) {
  const int context = parameters.context;
  if (context == 1) return {};
  if (roles.sequence <= 1) return fmt::format("cp={} splits sequences, and this model's attention has none", context);
  if (roles.sequence % context != 0)
    return fmt::format("a sequence of {} cannot be divided among cp={} devices", roles.sequence, context);
  if (parameters.sequence_parallel && roles.sequence % (std::int64_t(context) * parameters.tensor) != 0)
    return fmt::format("a sequence of {} cannot be divided among cp={} times tp={} devices, as sequence-parallel asks",
                       roles.sequence, context, parameters.tensor);
  if (experts.experts > 0 && parameters.expert % context != 0 && context % parameters.expert != 0)
    return fmt::format(
        "ep={} is neither a multiple nor a divisor of cp={}: some devices of a context group would have "
        "experts of another group",
        parameters.expert, context);
  return context_refusal(model, experts, context);
}

/// Why experts cannot be split over so many of the devices that share batch and sequence; empty: they can, or need not.
std::string expert_refusal_of(const ManualParameters& parameters, std::int64_t data, const ExpertLoops& experts) {
  const int expert = parameters.expert;
  if (expert == 1) return {};
  if (experts.experts % expert != 0)
    return fmt::format("{} experts cannot be divided among ep={} devices", experts.experts, expert);
  if (data * parameters.context % expert == 0) return {};
  const std::string context = parameters.context > 1 ? fmt::format(" times cp={}", parameters.context) : "";
  return fmt::format("ep={} does not divide the devices of dp={}{} that share the batch", expert, data, context);
}

/// Why a transformer cannot be split by groups of these sizes; empty: it can.
std::string roles_refusal(const ManualParameters& parameters, const Scenario& scenario, const TransformerRoles& roles,
                          std::int64_t data) {
  auto reason = tensor_parallel_refusal(roles, parameters.tensor, parameters.sequence_parallel);
  if (!reason.empty() || (parameters.context == 1 && parameters.expert == 1)) return reason;
  const ExpertLoops experts = find_expert_loops(*scenario.model);
  reason = expert_refusal_of(parameters, data, experts);
  return reason.empty() ? context_refusal_of(parameters, *scenario.model, roles, experts) : reason;
}

std::string lacks_groups(const Cluster& stage, const std::string& groups) {
  return fmt::format("{} groups are neither equal parts of a node nor whole nodes on {} nodes of {} devices", groups,
                     stage.nodes, stage.devices_per_node);
}

/// Why a machine, or one stage of it, has no context or expert groups around tensor groups, which it has; empty: it
/// has.
std::string groups_refusal(const ManualParameters& parameters, const Cluster& stage) {
  const Mesh mesh = make_mesh(stage);
  const std::string tensor = parameters.tensor > 1 ? fmt::format(" times tp={}", parameters.tensor) : "";
  if (!assign_axes(mesh, {parameters.tensor, parameters.context}))
    return lacks_groups(stage, fmt::format("cp={}{}", parameters.context, tensor));
  if (!assign_axes(mesh, {parameters.tensor, parameters.context, parameters.expert}))
    return lacks_groups(stage, fmt::format("ep={}{}", parameters.expert, tensor));
  return {};
}

/// Why so many devices cannot share each copy of what is sharded; empty: they can, or all share one.
std::string shard_refusal(const ManualParameters& parameters, std::int64_t data, const Cluster& stage) {
  const int shard = parameters.shard;
  if (shard == 0) return {};
  if (parameters.zero == 0) return fmt::format("shard={} needs zero of 1, 2 or 3, which says what is sharded", shard);
  if (data * parameters.context % shard != 0) {
    const std::string context = parameters.context > 1 ? fmt::format(" times cp={}", parameters.context) : "";
    return fmt::format("shard={} does not divide the devices of dp={}{} that share the batch", shard, data, context);
  }
  const Mesh mesh = make_mesh(stage);
  const auto axes = assign_axes(mesh, {parameters.tensor, parameters.context, parameters.expert});
  const auto sharing = axes ? sharing_axes(mesh, *axes, shard) : std::nullopt;
  if (!sharing)
    return lacks_groups(
        stage,
        fmt::format("shard={}{}", shard, parameters.tensor > 1 ? fmt::format(" times tp={}", parameters.tensor) : ""));
  if ((axes->expert & ~*sharing) == 0) return {};
  return fmt::format("shard={} is no multiple of ep={}: each copy of the model has all its experts", shard,
                     parameters.expert);
}

/// Devices that share the batch. Usage error: the sizes do not make so many devices.
Expected<std::int64_t> data_size(const ManualParameters& parameters, std::int64_t devices) {
  const std::int64_t model_parallel = std::int64_t(parameters.tensor) * parameters.context * parameters.stages;
  const std::string context = parameters.context > 1 ? fmt::format(" times cp={}", parameters.context) : "";
  if (parameters.data == 0 && devices % model_parallel != 0)
    return usage_error(fmt::format("tp={}{} times pp={} does not divide {} devices", parameters.tensor, context,
                                   parameters.stages, devices));
  const std::int64_t data = parameters.data > 0 ? parameters.data : devices / model_parallel;
  const double made = double(data) * double(model_parallel);  // four factors of up to 2^20
  if (made != double(devices))
    return usage_error(fmt::format("dp={} times tp={}{} times pp={} makes {:.0f} devices, not {}", data,
                                   parameters.tensor, context, parameters.stages, made, devices));
  return data;
}

/// Why a step cannot be laid out as the switches of engines say; empty: it can.
std::string switches_refusal(const ManualParameters& parameters) {
  if (parameters.gather_first && parameters.zero != 1 && parameters.zero != 2)
    return "gather-first needs zero of 1 or 2: otherwise no new weights are gathered";
  if (parameters.reduce_last && parameters.zero > 1)
    return fmt::format("reduce-last needs zero of 0 or 1: with zero={} gradients are scattered as they come",
                       parameters.zero);
  if (parameters.reduce_last && parameters.gather_first)
    return "reduce-last and gather-first exclude each other, as their arguments do in Megatron-LM";
  if (parameters.beside_products && (parameters.tensor == 1 || !parameters.sequence_parallel))
    return "tp-comm-overlap needs tp of at least 2 and sequence-parallel, as Megatron-LM does";
  if (parameters.forwards_first && parameters.stages == 1) return "schedule=gpipe needs pp of at least 2";
  return {};
}

}  // namespace

Expected<ManualSplit> fit_manual(const ManualParameters& typed, const Scenario& scenario, const TransformerRoles* roles,
                                 const std::string& why_not) {
  ManualParameters parameters = typed;
  // torchtitan and MaxText take the devices of experts from those that share the batch, whatever is trained.
  if (typed.expert > 1 && roles && find_expert_loops(*scenario.model).experts == 0) parameters.expert = 1;
  const auto data_parallel = data_size(parameters, scenario.cluster->devices());
  if (!data_parallel) return data_parallel.error();
  const std::int64_t data = *data_parallel;
  const bool again = parameters.recompute || parameters.by_operator;
  const bool cuts_layers = parameters.tensor > 1 || parameters.context > 1 || parameters.expert > 1;
  if (!roles && (cuts_layers || parameters.stages > 1 || again || parameters.sequence_parallel))
    return usage_error("only dp, micro-batches and zero suit this model: " + why_not);
  const std::int64_t batch = scenario.model->batch;
  if (batch % (data * parameters.micro_batches) != 0)
    return usage_error(fmt::format("a batch of {} cannot be divided among dp={} times micro-batches={}", batch, data,
                                   parameters.micro_batches));
  const auto stage = stage_cluster(*scenario.cluster, parameters.stages);
  if (!stage)
    return usage_error(
        fmt::format("pp={} stages are neither whole nodes nor equal parts of a node on {} nodes of {} devices",
                    parameters.stages, scenario.cluster->nodes, scenario.cluster->devices_per_node));
  if (!assign_axes(make_mesh(*stage), {parameters.tensor}))
    return usage_error(lacks_groups(*stage, fmt::format("tp={}", parameters.tensor)));
  if (roles)
    if (const auto reason = roles_refusal(parameters, scenario, *roles, data); !reason.empty())
      return usage_error(reason);
  if (const auto reason = groups_refusal(parameters, *stage); !reason.empty()) return usage_error(reason);
  if (const auto reason = shard_refusal(parameters, data, *stage); !reason.empty()) return usage_error(reason);
  if (auto reason = switches_refusal(parameters); !reason.empty()) return usage_error(std::move(reason));
  if (again && roles->layers == 0)
    return usage_error("recompute goes by layers, and this model has none that could be told apart");
  if (parameters.stages > 1 && roles->layers == 0)
    return usage_error("stages are made of layers, and this model has none that could be told apart");
  if (const auto reason = runs_refusal(parameters, roles ? roles->layers : 0); !reason.empty())
    return usage_error(reason);
  ManualSplit split;
  split.data = static_cast<int>(data), split.tensor = parameters.tensor, split.stages = parameters.stages;
  split.context = parameters.context, split.expert = parameters.expert;
  split.micro_batches = parameters.micro_batches, split.zero = parameters.zero;
  split.shard = parameters.shard, split.gather_first = parameters.gather_first;
  split.forwards_first = parameters.forwards_first, split.sums_behind = parameters.reduce_last;
  split.beside_products = parameters.beside_products;
  split.recompute = parameters.recompute, split.sequence_parallel = parameters.sequence_parallel;
  split.selective = parameters.selective, split.by_operator = parameters.by_operator, split.chunks = parameters.chunks;
  split.cut = parameters.cut_by_time ? ManualSplit::Cut::time : ManualSplit::Cut::layers;
  return split;
}

namespace {

std::string manual_refuses(const Scenario& scenario, std::string_view parameters) {
  const auto parsed = parse_manual(parameters);
  if (!parsed) return parsed.error().what;
  const auto roles = find_transformer_roles(*scenario.model, scenario.settings.split_windows);
  const auto split =
      fit_manual(*parsed, scenario, roles ? &*roles : nullptr, roles ? std::string() : roles.error().what);
  return split ? std::string() : split.error().what;
}

Expected<std::unique_ptr<Searcher>> make_manual(std::string_view parameters) {
  const auto parsed = parse_manual(parameters);
  if (!parsed) return parsed.error();
  return std::unique_ptr<Searcher>(std::make_unique<Manual>(*parsed, std::string(parameters)));
}

}  // namespace

Method manual_method() {
  return {
      .name = "manual",
      .title = "Manual",
      .paper = "today's practice: Megatron-LM, DeepSpeed; 1F1B schedule, arXiv 2104.04473",
      .description = "A split of your own",
      .parameter_words =
          ": dp=4:tp=2:cp=2:ep=4:pp=2:vp=2:schedule=gpipe:micro-batches=16:zero=1:shard=4:gather-first:"
          "reduce-last:recompute[=op|selective]:sequence-parallel:tp-comm-overlap",
      .own_split = true,
      .options = manual_options(),
      .make_with = &make_manual,
      .refuses_with = &manual_refuses,
      .traits =
          [](std::string_view text) {
            const auto split = parse_manual(text);
            return MethodTraits{.shards_updates = split && split->zero > 0,
                                .fewest_collectives = true,
                                .recomputes = split && (split->recompute || split->by_operator),
                                .micro_batches = true};
          },
  };
}

}  // namespace turnpoint::search
