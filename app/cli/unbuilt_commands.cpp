// SPDX-License-Identifier: Apache-2.0
// Commands of the contract that have nothing behind them yet: they take any arguments and say so.
#include <fmt/format.h>

#include "app/cli/commands.h"

namespace turnpoint::cli {

void add_unbuilt_commands(CLI::App& app, Command& command) {
  for (const char* name : {"measure", "validate"}) {
    CLI::App* sub = app.add_subcommand(name, "Not built yet");
    sub->allow_extras();
    sub->callback([&command, name] {
      command.run = [name] { return report(usage_error(fmt::format("'{}' is not built yet", name))); };
    });
  }
}

}  // namespace turnpoint::cli
