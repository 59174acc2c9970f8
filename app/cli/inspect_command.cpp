// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/cli/commands.h"
#include "app/cli/scenario_arguments.h"
#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/scenario/scenario_json.h"
#include "core/search/scenario_of.h"

namespace turnpoint::cli {

namespace {

struct InspectOptions {
  std::string model, as, batch, sequence;
  bool json = false;
};

/// A scenario option by its key; its record checks the range. Empty text: not given, 0.
Expected<std::int64_t> read_size(std::string_view key, const std::string& text) {
  if (text.empty()) return std::int64_t(0);
  for (const auto& option : scenario_options()) {
    if (option.key != key) continue;
    const auto value = parse_option(option, text);
    if (!value) return value.error();
    return static_cast<std::int64_t>(*value);
  }
  return usage_error(fmt::format("no option '{}'", key));
}

/// Multiply-accumulates are whole numbers, and exact ones below 2^53.
nlohmann::ordered_json whole(double count) {
  if (count == std::floor(count) && std::abs(count) < 9.2e18) return static_cast<std::int64_t>(count);
  return count;
}

/// What was taken unasked, and why. Of the precision only one that the model states: nothing here depends on it.
std::vector<TakenSetting> told_settings(const ModelSource& source, const Model& model, const GivenSettings& given) {
  auto taken = taken_settings(source, model, source.stated().precision.value_or(Precision::fp32), given);
  std::erase_if(taken, [](const TakenSetting& one) { return one.key == "precision" && !one.stated; });
  return taken;
}

std::string describe(const Model& model, const ModelSummary& s, const std::vector<TakenSetting>& taken) {
  const auto reason = [&](std::string_view key) {
    const auto found =
        std::find_if(taken.begin(), taken.end(), [&](const TakenSetting& one) { return one.key == key; });
    return found == taken.end() ? std::string() : fmt::format(" ({})", found->reason);
  };
  std::string text = fmt::format("{}\n  source        {}\n  batch         {}{}\n", model.name, model.source,
                                 model.batch, reason("batch"));
  if (model.sequence > 0) text += fmt::format("  sequence      {}{}\n", model.sequence, reason("sequence"));
  for (const TakenSetting& one : taken)
    if (one.key == "precision") text += fmt::format("  precision     {} ({})\n", one.value, one.reason);
  text += fmt::format("  operators     {}\n  parameters    {} ({}), {} in fp32\n", s.operators, s.parameters,
                      format_count(double(s.parameters)), format_bytes(s.parameter_bytes));
  if (s.active_parameters != s.parameters) text += fmt::format("  active        {}\n", s.active_parameters);
  if (s.buffers > 0) text += fmt::format("  buffers       {}\n", s.buffers);
  text += fmt::format("  MACs          {} forward, {} backward\n", format_count(s.macs_forward),
                      format_count(s.macs_backward));
  text += fmt::format("  kept tensors  {} in fp32\n", format_bytes(s.activation_bytes));
  for (const auto& symbol : model.symbolic_dimensions) text += fmt::format("  symbolic      {}\n", symbol);
  for (const auto& warning : model.warnings) text += fmt::format("  warning: {}\n", warning);
  return text;
}

int inspect_tasks(const ModelSource& source, const TaskGraph& tasks, bool as_json) {
  const double seconds = std::accumulate(tasks.time_s.begin(), tasks.time_s.end(), 0.0);
  const auto persistent =
      std::accumulate(tasks.persistent_bytes.begin(), tasks.persistent_bytes.end(), std::int64_t(0));
  const auto output = std::accumulate(tasks.output_bytes.begin(), tasks.output_bytes.end(), std::int64_t(0));
  if (!as_json)
    return write_output({}, fmt::format("{}: a task graph of {} task{} and {} edge{}\ntime on one device   {}\n"
                                        "persistent memory    {}\ntensors              {}\nco-location groups   {}\n",
                                        source.name(), tasks.task_count(), tasks.task_count() == 1 ? "" : "s",
                                        tasks.edge_count(), tasks.edge_count() == 1 ? "" : "s", format_seconds(seconds),
                                        format_bytes(persistent), format_bytes(output), tasks.groups.size()));
  const nlohmann::ordered_json out = {{"name", source.name()},       {"source", source.source()},
                                      {"tasks", tasks.task_count()}, {"edges", tasks.edge_count()},
                                      {"time_s", seconds},           {"persistent_bytes", persistent},
                                      {"output_bytes", output},      {"groups", tasks.groups.size()}};
  return write_output({}, out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

int inspect(const InspectOptions& options) {
  ModelBinding binding;
  const auto batch = read_size("batch", options.batch);
  if (!batch) return report(batch.error());
  const auto sequence = read_size("sequence", options.sequence);
  if (!sequence) return report(sequence.error());
  const auto source = open_model(model_as(options.model, options.as));
  if (!source) return report(source.error());
  if (const TaskGraphPtr tasks = (*source)->tasks()) return inspect_tasks(**source, *tasks, options.json);
  binding.batch = *batch ? *batch : (*source)->chosen_batch() ? (*source)->chosen_batch() : 1;
  binding.sequence = *sequence;
  const auto model = (*source)->bind(binding);
  if (!model) return report(model.error());
  if (binding.sequence != 0 && (*model)->sequence != binding.sequence)
    std::fprintf(stderr, "note: --sequence is ignored: %s has no sequence that could be chosen\n",
                 (*source)->name().c_str());
  const ModelSummary s = summarise(**model);
  const auto taken = told_settings(**source, **model, {!options.batch.empty(), !options.sequence.empty(), false});
  if (!options.json) return write_output({}, describe(**model, s, taken));
  nlohmann::ordered_json out = {{"name", (*model)->name},
                                {"source", (*model)->source},
                                {"operators", s.operators},
                                {"parameters", s.parameters},
                                {"buffers", s.buffers},
                                {"active_parameters", s.active_parameters},
                                {"parameter_bytes", s.parameter_bytes},
                                {"macs_forward", whole(s.macs_forward)},
                                {"macs_backward", whole(s.macs_backward)},
                                {"activation_bytes", s.activation_bytes},
                                {"symbolic_dimensions", (*model)->symbolic_dimensions},
                                {"warnings", (*model)->warnings}};
  if (!taken.empty()) out["taken"] = write_taken(taken);
  return write_output({}, out.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

}  // namespace

void add_inspect_command(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("inspect", "Print what a model is made of");
  auto options = std::make_shared<InspectOptions>();
  sub->add_option("MODEL", options->model, "A path, or builtin:NAME[?batch=256&layers=24]")->required();
  sub->add_option("--batch", options->batch, "Samples in one iteration (default 1)");
  sub->add_option("--sequence", options->sequence, "Tokens per sample (default: the model's)");
  sub->add_option("--as", options->as, "Read a config.json as one of this family, whatever it says (llama, qwen3...)")
      ->type_name("FAMILY");
  sub->add_flag("--json", options->json, "Print JSON");
  sub->callback([&command, options] { command.run = [options] { return inspect(*options); }; });
}

}  // namespace turnpoint::cli
