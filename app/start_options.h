// SPDX-License-Identifier: Apache-2.0
// The command line of the window, read before there is any QApplication (which would abort without a display).
#pragma once

#include <optional>
#include <string>

#include "core/base/expected.h"

namespace turnpoint::app {

struct StartOptions {
  std::string path;  ///< session or model; empty: the sample
  std::string hardware;
  int devices = 0;
  std::string screenshot, export_plan;
  int width = 0, height = 0;
  int autosave_s = 60;  ///< between recovery copies; 0: none
  std::optional<bool> dark;
  bool stop = false;  ///< --help or --version was answered
};

/// Prints help and version itself. Errors are usage errors.
Expected<StartOptions> parse_start_options(int argc, const char* const* argv);

}  // namespace turnpoint::app
