// SPDX-License-Identifier: Apache-2.0
// `validate` will run a plan's step and compare; until the probe can, it says what there is instead.
#include <fmt/format.h>

#include "app/cli/commands.h"

namespace turnpoint::cli {

void add_validate_command(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("validate", "Run a plan and compare with its prediction: not built yet");
  sub->allow_extras();
  sub->callback([&command] {
    command.run = [] {
      Error error = usage_error(
          "'validate' is not built yet: turnpoint-probe measures kernels and collectives, but does not run plans");
      error.hint = "'measure' makes a profile that predictions can be made with";
      return report(error);
    };
  });
}

}  // namespace turnpoint::cli
