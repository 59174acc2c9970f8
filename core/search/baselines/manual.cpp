// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/manual.h"

#include <fmt/format.h>

#include "core/plan/one_stage.h"
#include "core/search/baselines/fsdp.h"
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
    return with_note(named, undivided_vocabulary(*scenario->model, *found, {split->tensor}));
  }

 private:
  static Expected<ResultPtr> plain_point(const ScenarioPtr& scenario, const TransformerRoles* roles,
                                         const ManualSplit& split, const RunContext& context) {
    const auto axes = assign_axes(make_mesh(*scenario->cluster), split.tensor);
    return tensor_data_point("manual", scenario, roles, split.tensor, split.sequence_parallel,
                             zero_choice(split.zero, axes ? axes->data : 0, scenario->settings.accounting), context,
                             split.by_operator);
  }

  ManualParameters parameters_;
  std::string text_;
};

}  // namespace

Expected<ManualParameters> parse_manual(std::string_view text) {
  const auto read = read_parameters("a split", manual_options(), text);
  if (!read) return read.error();
  ManualParameters parameters;
  parameters.data = read->integer("dp"), parameters.tensor = read->integer("tp"),
  parameters.stages = read->integer("pp");
  parameters.chunks = read->integer("vp");
  parameters.cut_by_time = read->choice("cut") == "time";
  parameters.micro_batches = read->integer("micro-batches");
  parameters.zero = read->integer("zero");  // the choices are the stages from 0 on
  const std::string_view recompute = read->choice("recompute");
  parameters.selective = recompute == "selective";
  parameters.by_operator = recompute == "op";
  parameters.recompute = parameters.selective || recompute == "full";
  parameters.sequence_parallel = read->flag("sequence-parallel");
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

}  // namespace

Expected<ManualSplit> fit_manual(const ManualParameters& parameters, const Scenario& scenario,
                                 const TransformerRoles* roles, const std::string& why_not) {
  const std::int64_t devices = scenario.cluster->devices();
  const std::int64_t model_parallel = std::int64_t(parameters.tensor) * parameters.stages;
  if (parameters.data == 0 && devices % model_parallel != 0)
    return usage_error(
        fmt::format("tp={} times pp={} does not divide {} devices", parameters.tensor, parameters.stages, devices));
  const std::int64_t data = parameters.data > 0 ? parameters.data : devices / model_parallel;
  if (data * model_parallel != devices)
    return usage_error(fmt::format("dp={} times tp={} times pp={} makes {} devices, not {}", data, parameters.tensor,
                                   parameters.stages, data * model_parallel, devices));
  const bool again = parameters.recompute || parameters.by_operator;
  if (!roles && (parameters.tensor > 1 || parameters.stages > 1 || again || parameters.sequence_parallel))
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
  if (!assign_axes(make_mesh(*stage), parameters.tensor))
    return usage_error(
        fmt::format("tp={} groups are neither equal parts of a node nor whole nodes on {} nodes of {} devices",
                    parameters.tensor, stage->nodes, stage->devices_per_node));
  if (roles)
    if (const auto reason = tensor_parallel_refusal(*roles, parameters.tensor, parameters.sequence_parallel);
        !reason.empty())
      return usage_error(reason);
  if (again && roles->layers == 0)
    return usage_error("recompute goes by layers, and this model has none that could be told apart");
  if (parameters.stages > 1 && roles->layers == 0)
    return usage_error("stages are made of layers, and this model has none that could be told apart");
  if (const auto reason = runs_refusal(parameters, roles ? roles->layers : 0); !reason.empty())
    return usage_error(reason);
  ManualSplit split;
  split.data = static_cast<int>(data), split.tensor = parameters.tensor, split.stages = parameters.stages;
  split.micro_batches = parameters.micro_batches, split.zero = parameters.zero;
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
      .parameter_words = ": dp=4:tp=2:pp=2:vp=2:micro-batches=16:zero=1:recompute[=op|selective]:sequence-parallel",
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
