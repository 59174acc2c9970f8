// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/megatron.h"

#include <fmt/format.h>
#include <chrono>

#include "core/cost/selective_operators.h"
#include "core/search/baselines/options.h"
#include "core/search/baselines/parallel_axes.h"
#include "core/search/baselines/pipeline.h"
#include "core/search/baselines/restricted.h"
#include "core/search/method/notes.h"

namespace turnpoint::search {

namespace {

/// Why this size is not among the method's plans; empty: it is.
std::string size_refusal(const Scenario& scenario, const TransformerRoles& roles, int tensor, bool sequence_parallel,
                         int micro_batches) {
  const std::int64_t data = scenario.cluster->devices() / tensor;
  if (scenario.model->batch % (data * micro_batches) != 0)
    return fmt::format("a batch of {} cannot be divided among {} groups{}", scenario.model->batch, data,
                       micro_batches > 1 ? fmt::format(" and {} micro-batches", micro_batches) : "");
  return tensor_parallel_refusal(roles, tensor, sequence_parallel);
}

class Megatron : public Searcher {
 public:
  Megatron(const Parameters& read, std::string parameters)
      : sequence_parallel_(read.flag("sequence-parallel")),
        beside_products_(read.flag("tp-comm-overlap")),
        selective_(read.choice("recompute") == "selective"),
        micro_batches_(read.integer("micro-batches")),
        parameters_(std::move(parameters)) {}

  Expected<ResultPtr> run(const ScenarioPtr& scenario, SearchPass, const RunContext& context) override {
    const auto start = std::chrono::steady_clock::now();
    const auto roles = find_transformer_roles(*scenario->model, scenario->settings.split_windows);
    if (!roles) return roles.error();
    std::vector<ResultPtr> results;
    std::vector<int> sizes;
    std::string reason;
    for (int tensor = 1; tensor <= scenario->cluster->devices_per_node; ++tensor) {
      if (scenario->cluster->devices_per_node % tensor != 0) continue;
      if (auto refusal = size_refusal(*scenario, *roles, tensor, sequence_parallel_, micro_batches_);
          !refusal.empty()) {
        if (reason.empty()) reason = std::move(refusal);
        continue;
      }
      auto result = point(scenario, *roles, tensor, context);
      if (!result) return result.error();
      results.push_back(std::move(*result));
      sizes.push_back(tensor);
    }
    if (results.empty()) return usage_error("no tensor group size suits: " + reason);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    auto merged = std::make_shared<Result>(*merge_points("megatron", results, elapsed.count()));
    merged->method_options = parameters_;
    return with_note(merged, undivided_vocabulary(*scenario->model, *roles, sizes));
  }

 private:
  Expected<ResultPtr> point(const ScenarioPtr& scenario, const TransformerRoles& roles, int tensor,
                            const RunContext& context) const {
    const bool beside = beside_products_ && tensor > 1;
    if (!selective_ && micro_batches_ == 1 && !beside)
      return grouped_point("megatron", scenario, &roles, {tensor}, sequence_parallel_, {}, context);
    ManualSplit split;
    split.data = scenario->cluster->devices() / tensor, split.tensor = tensor;
    split.micro_batches = micro_batches_;
    split.recompute = split.selective = selective_, split.sequence_parallel = sequence_parallel_;
    split.beside_products = beside;
    return pipeline_point(scenario, &roles, split, context);
  }

  bool sequence_parallel_, beside_products_, selective_;
  int micro_batches_;
  std::string parameters_;
};

Expected<Parameters> read_megatron(std::string_view text) {
  return read_parameters("method megatron", megatron_options(), text);
}

/// Why the model cannot be split like this; empty: it can.
std::string megatron_refuses(const Scenario& scenario, std::string_view text) {
  const auto parameters = read_megatron(text);
  if (!parameters) return parameters.error().what;
  if (parameters->flag("tp-comm-overlap") && !parameters->flag("sequence-parallel"))
    return "tp-comm-overlap needs sequence-parallel, as Megatron-LM does";
  const auto roles = find_transformer_roles(*scenario.model, scenario.settings.split_windows);
  if (!roles) return roles.error().what;
  std::string reason;
  for (int tensor = 1; tensor <= scenario.cluster->devices_per_node; ++tensor) {
    if (scenario.cluster->devices_per_node % tensor != 0) continue;
    auto refusal = size_refusal(scenario, *roles, tensor, parameters->flag("sequence-parallel"),
                                parameters->integer("micro-batches"));
    if (refusal.empty()) return {};
    if (reason.empty()) reason = std::move(refusal);
  }
  return reason;
}

Expected<std::unique_ptr<Searcher>> make_megatron(std::string_view text) {
  const auto parameters = read_megatron(text);
  if (!parameters) return parameters.error();
  return std::unique_ptr<Searcher>(std::make_unique<Megatron>(*parameters, std::string(text)));
}

}  // namespace

std::string tensor_parallel_refusal(const TransformerRoles& roles, int tensor, bool sequence_parallel) {
  if (roles.heads % tensor != 0)
    return fmt::format("{} heads cannot be divided among tensor groups of {} devices", roles.heads, tensor);
  if (roles.inner % tensor != 0)
    return fmt::format("{} inner channels cannot be divided among tensor groups of {} devices", roles.inner, tensor);
  if (sequence_parallel && roles.sequence % tensor != 0)
    return fmt::format("a sequence of {} cannot be divided among tensor groups of {} devices", roles.sequence, tensor);
  return {};
}

Expected<ResultPtr> grouped_point(const std::string& method, const ScenarioPtr& scenario, const TransformerRoles* roles,
                                  const GroupSizes& groups, bool sequence_parallel, const MemoryChoice& choice,
                                  const RunContext& context, bool again) {
  const auto axes = assign_axes(make_mesh(*scenario->cluster), groups);
  if (!axes)
    return usage_error(
        fmt::format("tensor groups of {} devices are neither a part of a node of {} nor made of whole nodes",
                    groups.tensor, scenario->cluster->devices_per_node));
  const Model& model = *scenario->model;
  SplitRules rules{*axes, roles, sequence_parallel, {}};
  if (axes->expert | axes->context) rules.experts = find_expert_loops(model);
  if (const auto reason = expert_context_refusal(model, make_mesh(*scenario->cluster), rules); !reason.empty())
    return usage_error(reason);
  const auto only = [&](OperatorId id, const Operator&, const Mesh& mesh) {
    return split_configurations(model, id, mesh, rules);
  };
  SearchSpace space;
  space.only = only;
  space.choice = choice;
  if (again && roles) space.again = selective_operators(model, *roles);
  space.gathers_again = sequence_parallel || axes->context != 0;
  // To experts on context and data axes few tensors go in one collective that would not send them to everybody.
  const bool parts = rules.experts.experts > 0 && (axes->context & ~axes->expert) != 0;
  const bool both = parts || ((axes->expert & axes->context) != 0 && (axes->expert & axes->data) != 0);
  return fastest_with(method, scenario, space, both ? ReshardingModel::Ways::cheapest : ReshardingModel::Ways::fewest,
                      context);
}

Method megatron_method() {
  return {
      .name = "megatron",
      .title = "Megatron",
      .paper = "Megatron-LM, arXiv 1909.08053",
      .description = "Tensor groups inside a node times data parallelism, for every size of the groups",
      .frontier = true,
      .on_by_default = true,
      .options = megatron_options(),
      .make_with = &make_megatron,
      .refuses_with = &megatron_refuses,
      .traits =
          [](std::string_view text) {
            const auto parameters = read_megatron(text);
            return MethodTraits{.fewest_collectives = true,
                                .recomputes = parameters && parameters->choice("recompute") != "none",
                                .micro_batches = parameters && (parameters->integer("micro-batches") > 1)};
          },
  };
}

}  // namespace turnpoint::search
