// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <clocale>
#include <cmath>
#include <cstdio>
#include <exception>
#include <new>
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
  if (given.starts_with("-")) return usage_error("a command comes first, not '" + given + "'; there are " + list);
  Error error = usage_error("unknown command '" + given + "'; there are " + list);
  if (const std::string close = closest_match(given, names); !close.empty())
    error.hint = "did you mean '" + close + "'?";
  return error;
}

bool is_number_type(const std::string& type, const char* kind) {
  return type == kind || type.starts_with(std::string(kind) + ' ') || type.starts_with(std::string(kind) + ":");
}

/// What the parser lets through: an empty value (of a variable that is not set) would be the default, nan lies in every
/// range, and -1 wraps around where no number is negative.
std::optional<Error> wrong_value(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_items_expected_max() == 0) continue;
    const std::string name = option->get_name(), type = option->get_type_name();
    for (const std::string& value : option->results()) {
      if (value.empty()) return usage_error(name + " has an empty value");
      const auto number = parse_double(value);
      const bool real = is_number_type(type, "FLOAT");
      const bool odd = value.find_first_of("nN") != std::string::npos;  // nan and inf in every spelling
      if (real && (odd || (number && !std::isfinite(*number))))
        return usage_error(name + " needs a finite number, not '" + value + "'");
      if (is_number_type(type, "UINT") && value.find('-') != std::string::npos)
        return usage_error(name + " cannot be negative, and is '" + value + "'");
    }
  }
  return std::nullopt;
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
  cli::add_explain_command(app, command);
  cli::add_place_command(app, command);
  cli::add_training_graph_command(app, command);
  cli::add_simulate_command(app, command);
  cli::add_study_command(app, command);
  cli::add_sweep_command(app, command);
  cli::add_measure_command(app, command);
  cli::add_validate_command(app, command);
  app.footer(
      "For example:\n"
      "  turnpoint-cli search builtin:gpt2 --hardware v100-16gb-2x8\n"
      "  turnpoint-cli search builtin:gpt2 --hardware v100-16gb-2x8 --out found.json\n"
      "  turnpoint-cli export found.json --point turning --to csv\n"
      "'turnpoint-cli COMMAND --help' lists the options of a command.");
  if (argc < 2) {
    // Help for a person, and no success for a script that has lost its arguments.
    std::fputs(app.help().c_str(), stderr);
    return cli::kUsage;
  }
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
  for (const CLI::App* used : app.get_subcommands())
    if (const auto wrong = wrong_value(*used)) return cli::report(*wrong);
  return command.run ? command.run() : cli::kUsage;
}

}  // namespace

int main(int argc, char** argv) {
  // Files and options speak English numbers whatever the user's locale.
  std::setlocale(LC_ALL, "C");
  try {
    cli::watch_interrupts();
    return parse_and_run(argc, argv);
  } catch (const std::bad_alloc&) {
    return cli::report(
        {ErrorCode::bad_input, "there is not enough memory for this", {}, "a smaller model or fewer devices"});
  } catch (const std::exception& error) {
    return cli::report(bad_input(error.what()));
  }
}
