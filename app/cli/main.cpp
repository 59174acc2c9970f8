// SPDX-License-Identifier: Apache-2.0
#include <clocale>
#include <cstdio>
#include <exception>

#include "app/cli/commands.h"

using namespace turnpoint;

namespace {

int parse_and_run(int argc, char** argv) {
  CLI::App app("Searches for memory-time trade-offs of distributed training", "turnpoint-cli");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands and exit");
  cli::Command command;
  cli::add_models_command(app, command);
  cli::add_hardware_command(app, command);
  cli::add_inspect_command(app, command);
  cli::add_unbuilt_commands(app, command);
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
