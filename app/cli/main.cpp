// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <clocale>
#include <exception>
#include <optional>

#include "app/cli/commands.h"
#include "core/base/text.h"

using namespace turnpoint;

namespace {

/// CLI11 calls a wrong command name a missing one; people want to know which word was wrong.
std::optional<Error> wrong_command(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr)) names.push_back(sub->get_name());
  const std::string given = argc > 1 ? argv[1] : "";
  const bool about = given == "-h" || given == "--help" || given == "--help-all" || given == "--version";
  if (about || std::find(names.begin(), names.end(), given) != names.end()) return std::nullopt;
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "" : ", ") + name;
  if (given.empty()) return usage_error("no command given; there are " + list);
  if (given.starts_with("-")) return usage_error("a command comes first, not '" + given + "'; there are " + list);
  Error error = usage_error("unknown command '" + given + "'; there are " + list);
  if (const std::string close = closest_match(given, names); !close.empty())
    error.hint = "did you mean '" + close + "'?";
  return error;
}

int parse_and_run(int argc, char** argv) {
  CLI::App app("Searches for memory-time trade-offs of distributed training", "turnpoint-cli");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  app.set_version_flag("--version", "turnpoint-cli " TURNPOINT_VERSION);
  cli::Command command;
  cli::add_models_command(app, command);
  cli::add_hardware_command(app, command);
  cli::add_methods_command(app, command);
  cli::add_inspect_command(app, command);
  cli::add_search_command(app, command);
  cli::add_solve_command(app, command);
  cli::add_export_command(app, command);
  cli::add_place_command(app, command);
  cli::add_simulate_command(app, command);
  cli::add_measure_command(app, command);
  cli::add_validate_command(app, command);
  if (const auto wrong = wrong_command(app, argc, argv)) return cli::report(*wrong);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success);
    if (asked_for_help) return app.exit(error) == 0 ? cli::kDone : cli::kUsage;
    std::string what = error.what();
    while (!what.empty() && (what.back() == '\n' || what.back() == '.')) what.pop_back();
    Error wrong = usage_error(std::move(what));
    wrong.hint = "run with --help for the usage";
    return cli::report(wrong);
  }
  return command.run ? command.run() : cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  // Files and options speak English numbers whatever the user's locale.
  std::setlocale(LC_ALL, "C");
  try {
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    return cli::report(bad_input("out of memory"));
  } catch (const std::exception& error) {
    return cli::report(bad_input(error.what()));
  }
}
