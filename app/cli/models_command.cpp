// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/import/source/model_source.h"

namespace turnpoint::cli {

namespace {

int list_models(bool json) {
  if (json) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& model : builtin_models())
      list.push_back(
          {{"name", "builtin:" + model.name}, {"description", model.description}, {"parameters", model.parameters}});
    return write_output({}, list.dump(1) + "\n");
  }
  std::string text;
  for (const auto& model : builtin_models())
    text += fmt::format("{:<24} {}; parameters: {}\n", "builtin:" + model.name, model.description, model.parameters);
  return write_output({}, text);
}

}  // namespace

void add_models_command(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("models", "List the built-in models");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "Print JSON");
  sub->callback([&command, json] { command.run = [json] { return list_models(*json); }; });
}

}  // namespace turnpoint::cli
