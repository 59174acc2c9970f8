// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/manual.h"

#include <fmt/format.h>
#include <charconv>
#include <optional>
#include <set>

#include "core/base/text.h"
#include "core/search/baselines/fsdp.h"
#include "core/search/baselines/megatron.h"
#include "core/search/baselines/notes.h"
#include "core/search/baselines/parallel_axes.h"

namespace turnpoint::search {

namespace {

constexpr int kMostParts = 1 << 20;

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

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
                             zero_choice(split.zero, axes ? axes->data : 0), context);
  }

  ManualParameters parameters_;
  std::string text_;
};

}  // namespace

Expected<ManualParameters> parse_manual(std::string_view text) {
  ManualParameters parameters;
  if (text.empty()) return parameters;
  std::set<std::string_view> given;
  for (const auto word : split(text, ':')) {
    const auto equals = word.find('=');
    const std::string_view key = word.substr(0, equals);
    if (!given.insert(key).second) return usage_error(fmt::format("a split has '{}' twice", key));
    if (equals == std::string_view::npos) {
      if (key == "recompute")
        parameters.recompute = true;
      else if (key == "sequence-parallel")
        parameters.sequence_parallel = true;
      else
        return usage_error(fmt::format(
            "a split is written dp=4:tp=2:pp=2:micro-batches=16:zero=1:recompute=selective:sequence-parallel; '{}' "
            "is none of these",
            word));
      continue;
    }
    if (key == "sequence-parallel")
      return usage_error(
          fmt::format("{} is on where it is written and takes no value, such as '{}'", key, word.substr(equals + 1)));
    if (key == "recompute") {
      parameters.recompute = true;
      parameters.selective = word == "recompute=selective";
      if (!parameters.selective && word != "recompute=full")
        return usage_error(fmt::format("recompute is full or selective, not '{}'", word.substr(equals + 1)));
      continue;
    }
    int* target = key == "dp"              ? &parameters.data
                  : key == "tp"            ? &parameters.tensor
                  : key == "pp"            ? &parameters.stages
                  : key == "micro-batches" ? &parameters.micro_batches
                  : key == "zero"          ? &parameters.zero
                                           : nullptr;
    if (!target)
      return usage_error(
          fmt::format("a split knows dp, tp, pp, micro-batches, zero, recompute and sequence-parallel, not '{}'", key));
    const auto value = whole_number(word.substr(equals + 1));
    const int least = key == "zero" ? 0 : 1, most = key == "zero" ? 3 : kMostParts;
    if (!value || *value < least || *value > most)
      return usage_error(
          fmt::format("{} must be a whole number from {} to {}, not '{}'", key, least, most, word.substr(equals + 1)));
    *target = *value;
  }
  return parameters;
}

std::string format_manual(const ManualParameters& parameters) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ":") + word; };
  if (parameters.data > 0) add(fmt::format("dp={}", parameters.data));
  if (parameters.tensor > 1) add(fmt::format("tp={}", parameters.tensor));
  if (parameters.stages > 1) add(fmt::format("pp={}", parameters.stages));
  if (parameters.micro_batches > 1) add(fmt::format("micro-batches={}", parameters.micro_batches));
  if (parameters.zero > 0) add(fmt::format("zero={}", parameters.zero));
  if (parameters.recompute) add(parameters.selective ? "recompute=selective" : "recompute");
  if (parameters.sequence_parallel) add("sequence-parallel");
  return text;
}

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
  if (!roles &&
      (parameters.tensor > 1 || parameters.stages > 1 || parameters.recompute || parameters.sequence_parallel))
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
  if (parameters.recompute && roles->layers == 0)
    return usage_error("recompute keeps the inputs of layers, and this model has none that could be told apart");
  if (parameters.stages > 1 && roles->layers == 0)
    return usage_error("stages are made of layers, and this model has none that could be told apart");
  if (parameters.stages > 1 && roles->layers % parameters.stages != 0)
    return usage_error(fmt::format("{} layers cannot be divided among pp={} stages", roles->layers, parameters.stages));
  return ManualSplit{static_cast<int>(data),       parameters.tensor,   parameters.stages,
                     parameters.micro_batches,     parameters.zero,     parameters.recompute,
                     parameters.sequence_parallel, parameters.selective};
}

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

}  // namespace turnpoint::search
