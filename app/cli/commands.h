// SPDX-License-Identifier: Apache-2.0
// The commands of turnpoint-cli. Each add_*_command declares its options on the parser and stores what to run.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/expected.h"
#include "core/base/file_writer.h"
#include "core/base/progress.h"

namespace turnpoint::cli {

/// Exit codes of resources/manual/command-line.md.
inline constexpr int kDone = 0, kUsage = 2, kBadInput = 3, kInfeasible = 4, kDevice = 5, kInterrupted = 130;
int exit_code(const Error& error);

/// Set by the chosen command's callback; main() runs it after parsing.
struct Command {
  std::function<int()> run;
};

/// Prints "turnpoint-cli: message" to standard error and returns the exit code.
int report(const Error& error);
/// Whether a result of at least so many bytes could go there, asked before hours are spent on it: kDone, or what
/// report() returned.
int check_output(const std::string& path, std::size_t bytes = 0);
/// What a measurement's or a validation's file takes, generously.
inline constexpr std::size_t kMeasuredBytes = 512u << 10;
/// Writes to the file, or to standard output if the path is empty or "-"; returns an exit code.
int write_output(const std::string& path, std::string_view text);
/// The same for a text that is made while it is written; a file appears whole or not at all.
int write_output(const std::string& path, const std::function<Expected<void>(const TextSink&)>& write);
/// Whether a result that no file was named for would be read by a person: standard output, as the command found it, is a
/// terminal.
bool shown_to_a_person(const std::string& path);
/// First thing in main: SIGINT and SIGTERM are blocked in every thread and waited for in one of their own, since a stop
/// request runs callbacks, which a signal handler must not. A command that has asked for its context is requested to
/// stop, and a second signal ends it at once; any other ends at once. The exit code is kInterrupted, and no unfinished
/// file stays.
void watch_interrupts();
/// Stop token that an interrupt (Ctrl+C) triggers; progress goes to standard error where that is a terminal.
RunContext command_context(int threads);

void add_models_command(CLI::App& app, Command& command);
void add_hardware_command(CLI::App& app, Command& command);
void add_methods_command(CLI::App& app, Command& command);
void add_inspect_command(CLI::App& app, Command& command);
void add_search_command(CLI::App& app, Command& command);
void add_solve_command(CLI::App& app, Command& command);
void add_export_command(CLI::App& app, Command& command);
void add_explain_command(CLI::App& app, Command& command);
void add_place_command(CLI::App& app, Command& command);
void add_training_graph_command(CLI::App& app, Command& command);
void add_simulate_command(CLI::App& app, Command& command);
void add_study_command(CLI::App& app, Command& command);
void add_sweep_command(CLI::App& app, Command& command);
void add_measure_command(CLI::App& app, Command& command);
void add_validate_command(CLI::App& app, Command& command);

}  // namespace turnpoint::cli
