// SPDX-License-Identifier: Apache-2.0
#include "app/cli/scenario_arguments.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "core/base/text.h"
#include "core/import/huggingface/huggingface.h"
#include "core/import/source/model_source.h"
#include "core/search/scenario_of.h"

namespace turnpoint::cli {

namespace {

// The flags that are on unless --without names them.
std::vector<std::string_view> switch_names() {
  std::vector<std::string_view> names;
  for (const auto& record : scenario_options())
    if (record.type == OptionType::flag && record.default_value != 0) names.push_back(record.key);
  return names;
}

}  // namespace

std::string model_as(const std::string& model, const std::string& family) {
  if (family.empty()) return model;
  // A question mark may as well belong to a file's or a folder's name.
  std::error_code ec;
  const auto mark = model.rfind('?');
  bool changed = mark != std::string::npos && !std::filesystem::exists(model, ec);
  if (changed && !model.starts_with("builtin:")) {
    const auto changes = read_config_changes(std::string_view(model).substr(mark + 1), model);
    changed = !changes || changes->has_value();  // what is wrong with them is said by open_model()
  }
  return model + (changed ? "&as=" : "?as=") + family;
}

void add_scenario_arguments(CLI::App& app, ScenarioArguments& arguments) {
  app.add_option("model", arguments.model, "A model file, a task graph, or builtin:NAME")
      ->required()
      ->type_name("MODEL");
  app.add_option("--as", arguments.as, "Read a config.json as one of this family, whatever it says (llama, qwen3...)")
      ->type_name("FAMILY");
  app.add_option("--hardware", arguments.hardware,
                 "A preset such as v100-16gb-2x8, or a profile file; a task graph's own file without it")
      ->type_name("HW");
  for (const auto& record : scenario_options()) {
    auto& [key, text] = arguments.options.emplace_back(std::string(record.key), std::string());
    std::string help(record.help);
    const bool stated = record.key == "batch" || record.key == "precision";
    help += fmt::format(" [{}{}]", stated ? "what the model states, else " : "",
                        format_option(record, record.default_value));
    if (record.type == OptionType::flag && record.default_value != 0) continue;  // switched off by --without
    if (record.type == OptionType::flag) {
      app.add_flag_callback(
          "--" + key, [&value = text] { value = "true"; }, help);
    } else {
      app.add_option("--" + key, text, help)->type_name(record.unit.empty() ? "VALUE" : std::string(record.unit));
    }
  }
  app.add_option("--without", arguments.without,
                 fmt::format("Choices to leave out, comma-separated: {}", fmt::join(switch_names(), ", ")));
}

Expected<ScenarioPtr> open_scenario(const ScenarioArguments& arguments) {
  const auto opened = open_with_source(arguments);
  if (!opened) return opened.error();
  return opened->scenario;
}

Expected<OpenedScenario> open_with_source(const ScenarioArguments& arguments) {
  Settings settings;
  for (const auto& record : scenario_options()) {
    const auto given = std::find_if(arguments.options.begin(), arguments.options.end(),
                                    [&](const auto& option) { return option.first == record.key; });
    if (given == arguments.options.end() || given->second.empty()) continue;
    const std::string& text = given->second;
    const auto value = parse_option(record, text);
    if (!value) return value.error();
    set_option(settings, record.key, *value);
  }
  if (!arguments.without.empty()) {
    const auto names = switch_names();
    for (const auto name : split(arguments.without, ',')) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        return usage_error(fmt::format("--without knows {}, not '{}'", fmt::join(names, ", "), name));
      set_option(settings, name, 0);
    }
  }
  auto source = open_model(model_as(arguments.model, arguments.as));
  if (!source) return source.error();
  const auto is_given = [&](std::string_view key) {
    return std::any_of(arguments.options.begin(), arguments.options.end(),
                       [&](const auto& option) { return option.first == key && !option.second.empty(); });
  };
  const GivenSettings given = {is_given("batch"), is_given("sequence"), is_given("precision")};
  if (arguments.hardware.empty() && !(*source)->tasks())
    return usage_error("--hardware is required for a model: a preset such as v100-16gb-2x8, or a profile file");
  auto scenario = scenario_of(**source, arguments.hardware, with_stated(**source, settings, given));
  if (!scenario) return scenario.error();
  auto told = std::make_shared<Scenario>(**scenario);
  told->taken = taken_settings(**source, **scenario, given);
  return OpenedScenario{*source, std::move(told)};
}

std::string note_on_added_nodes(const ScenarioArguments& arguments, const Scenario& scenario) {
  const Cluster& used = *scenario.cluster;
  if (scenario.settings.devices <= 0 || used.nodes < 2 || arguments.hardware == "local") return {};
  const auto named = open_hardware(arguments.hardware);
  if (!named || used.nodes <= (*named)->nodes) return {};
  return fmt::format("--devices {}: {} nodes x {} devices; {} has {} node{}", used.devices(), used.nodes,
                     used.devices_per_node, arguments.hardware, (*named)->nodes, (*named)->nodes == 1 ? "" : "s");
}

}  // namespace turnpoint::cli
