// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/cli/commands.h"
#include "core/search/placement_registry.h"
#include "core/search/registry.h"

namespace turnpoint::cli {

void add_methods_command(CLI::App& app, Command& command) {
  auto* sub = app.add_subcommand("methods", "List the search methods");
  auto json = std::make_shared<bool>(false);
  sub->add_flag("--json", *json, "Machine-readable output");
  sub->callback([&command, json] {
    command.run = [json] {
      if (*json) {
        nlohmann::json list = nlohmann::json::array();
        for (const auto& method : methods()) {
          list.push_back({{"name", method.name},
                          {"title", method.title},
                          {"paper", method.paper},
                          {"description", described(method)},
                          {"frontier", method.frontier}});
          if (!method.places) continue;
          list.back()["places"] = true;
          const auto placed = placement::find_placement_method(method.name);
          if (placed && (*placed)->unavailable) list.back()["unavailable"] = (*placed)->unavailable();
        }
        return write_output("", list.dump(2) + "\n");
      }
      std::string text;
      for (const auto& method : methods())
        text += fmt::format("{:<25} {} ({}{})\n", method.name, described(method), method.paper,
                            method.places ? "; for 'place' as well" : "");
      return write_output("", text);
    };
  });
}

}  // namespace turnpoint::cli
